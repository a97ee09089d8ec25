"""Strategic merge's own words: keys of a patch that say what to do instead of what to set."""

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
SET_ORDER = "$setElementOrder"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"

WITH_FIELD = (SET_ORDER, DELETE_FROM_LIST)  # written `$directive/FIELD`
DIRECTIVES = (DIRECTIVE, RETAIN_KEYS, *WITH_FIELD)
