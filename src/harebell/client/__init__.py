"""The AMQP client: a core without I/O, and the asyncio and blocking APIs over it.

    from harebell.client import aio        # async with aio.connect(url) as connection
    from harebell.client import blocking   # with blocking.connect(url) as connection

Importing the package imports neither: a program loads only the API that it uses.
"""
