/* The version of these headers; the build reads it from here, so there is one place to change.
 *
 * Before 1.0 a new minor version may change the API; a new patch version never does. */
#ifndef TIKI_VERSION_H
#define TIKI_VERSION_H

#define TK_VERSION "0.1.0"

#endif
