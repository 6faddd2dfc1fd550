"""What every version of AMQP does the same way, written once.

    declare   queues and exchanges       bind      queues and exchanges to exchanges
    consume   consumers                  get       one message
    publish   the exchange of a publish  purge     what is ready in a queue
    delete    queues and exchanges

Each operation checks permissions and limits, calls the model and sends events. It knows
its caller (`Caller`) and no protocol: the version turns its method into a call, and a `Refusal`
into an error of its own. What only one version checks stands in that version.
"""
