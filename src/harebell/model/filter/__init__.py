"""The filter language: conditions on messages, such as `body.total > 10 AND NOT redelivered`.

    condition    conjunction { OR conjunction }
    conjunction  negation { AND negation }
    negation     NOT negation | "(" condition ")" | operand [test]
    test         ( = | == | != | <> | < | <= | > | >= ) operand
                 [NOT] IN "(" literal { "," literal } ")"
                 [NOT] BETWEEN operand AND operand
                 [NOT] LIKE string
                 [NOT] RLIKE string
                 IS [NOT] NULL
    operand      column | literal
    column       name { "." name | "[" whole number "]" | "[" string "]" }
    literal      string | number | TRUE | FALSE | NULL
    string       'text' or "text"; a doubled quote stands for one
    name         letters, digits, "_" and "-", or any text between two "`"

The names of the columns, the words and the meaning of NULL are those of Spark SQL over the data
source of Harebell; `columns` has the columns. The work for one message is limited: texts, JSON
bodies and regular expressions are looked at up to a size, and none can make a match take long.
"""

from harebell.model.filter.condition import Filter, compile_filter
from harebell.model.filter.errors import FilterError
from harebell.model.filter.subject import Subject

__all__ = ["Filter", "FilterError", "Subject", "compile_filter"]
