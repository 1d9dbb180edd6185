/* worker.py, as text that the build makes (tools/embed.sh). */
#ifndef TARGET_CUTE_SCRIPT_H
#define TARGET_CUTE_SCRIPT_H

extern const char tk_cute_script[];

#endif
