"""The filter language: conditions on messages, such as `body.total > 10 AND NOT redelivered`.

    condition    conjunction { OR conjunction }
    conjunction  negation { AND negation }
    negation     NOT negation | test
    test         sum [ ( = | == | != | <> | < | <= | > | >= ) sum
                     | [NOT] IN "(" sum { "," sum } ")"
                     | [NOT] BETWEEN sum AND sum
                     | [NOT] LIKE string [ESCAPE string]
                     | [NOT] RLIKE string
                     | IS [NOT] NULL ]
    sum          term { ( + | - ) term }
    term         signed { ( * | / | % ) signed }
    signed       [ + | - ] signed | operand
    operand      "(" condition ")" | column | literal | UTC "(" ")"
    column       name { "." name | "[" whole number "]" | "[" string "]" } | "[" header "]"
    literal      string | number | TRUE | FALSE | NULL
    string       'text' or "text"; a doubled quote stands for one
    name         as the dialect has it, or any text between two "`"

Filters of browsing, jobs and Spark read as Spark SQL over the data source of Harebell, selectors of
consumers as those of JMS: `dialect` has the differences, `columns` the columns. The work for one
message is limited: texts, JSON bodies and regular expressions are looked at up to a size, and none
can make a match take long.
"""
