"""The operations that all versions of AMQP share.

    declare   queues and exchanges       bind      queues and exchanges to exchanges
    consume   consumers                  get       one message
    publish   the exchange of a publish  purge     ready messages of a queue
    delete    queues and exchanges

Each operation checks permissions and limits, calls the model and sends events. It knows its caller
(`Caller`) and no protocol: the version turns its method into a call, and a `Refusal` into its own
error. Checks of a single version are in that version.
"""
