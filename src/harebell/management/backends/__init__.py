"""The backends of users that `auth_backends` names: who may log in, and what they may do.

    chain         the backends of the list, asked in order
    internal      the users of the broker
    web_service   a web service of the owner's (`auth_http`)
    cache         remembers the answers of another backend for a while (`auth_cache`)
    tokens        JSON web tokens with scopes (`auth_oauth2`)

Nothing here blocks the event loop: a remote server is asked in a thread, and only the connections
that wait for its answer are not served meanwhile.
"""
