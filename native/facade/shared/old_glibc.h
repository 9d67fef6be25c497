/* Selects versions of the C library's symbols that every glibc since 2.17 has, so that a facade built today also loads
 * in containers with an older library: there a preloaded library that needs a newer version ends every program.
 * The compiler's command line includes this file in all files of the facade. On aarch64 versions begin with 2.17. */
#ifndef LAMINA_OLD_GLIBC_H
#define LAMINA_OLD_GLIBC_H

#ifndef __ASSEMBLER__

#ifdef __x86_64__
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif

#define OLD(name) __asm__(".symver " #name ", " #name "@" OLDEST)
OLD(dlopen); /* part of libc since 2.34 */
OLD(dlsym);
OLD(dlerror);
OLD(pthread_once);
OLD(pthread_mutex_trylock);
__asm__(".symver fcntl64, fcntl@" OLDEST); /* the same on 64-bit machines */
OLD(pthread_key_create);
OLD(pthread_setspecific);

/* Since C23 these have other names, for binary literals, which the facade does not read. */
#ifdef __x86_64__
__asm__(".symver __isoc23_sscanf, __isoc99_sscanf@GLIBC_2.7");
#else
__asm__(".symver __isoc23_sscanf, __isoc99_sscanf@GLIBC_2.17");
#endif
__asm__(".symver __isoc23_strtol, strtol@" OLDEST);
__asm__(".symver __isoc23_strtoull, strtoull@" OLDEST);

#endif
#endif
