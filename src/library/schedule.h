/* What plans ask of schedules. */
#ifndef LIBRARY_SCHEDULE_H
#define LIBRARY_SCHEDULE_H

#include "tiki/library.h"

/* Every field at the lowest value of its range. */
void tk_library_schedule_lowest(tk_library_schedule *out);

/* TK_INVALID_ARGUMENT for a field that the kernel looks at and that is out of range. */
tk_status tk_library_schedule_check(tk_library_id id, const tk_library_schedule *schedule);

#endif
