/* The versions of the C library's symbols that every glibc since 2.17 has, so that a facade built today is also loaded
 * where containers bring an older library: a preloaded library that asks for a newer version ends every program there.
 * Included in all of the facade's files by the compiler's command line. On aarch64 the versions begin with 2.17, and
 * newer ones than that are avoided in the same way. */
#ifndef LAMINA_OLD_GLIBC_H
#define LAMINA_OLD_GLIBC_H

#ifndef __ASSEMBLER__

#ifdef __x86_64__
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif

#define OLD(name) __asm__(".symver " #name ", " #name "@" OLDEST)
OLD(dlopen); /* since 2.34 a part of libc */
OLD(dlsym);
OLD(dlerror);
OLD(pthread_once);
OLD(pthread_mutex_trylock);
__asm__(".symver fcntl64, fcntl@" OLDEST); /* the same on 64-bit machines */
OLD(pthread_key_create);
OLD(pthread_setspecific);

/* Since C23 these have other names, for binary literals that nobody reads here. */
#ifdef __x86_64__
__asm__(".symver __isoc23_sscanf, __isoc99_sscanf@GLIBC_2.7");
#else
__asm__(".symver __isoc23_sscanf, __isoc99_sscanf@GLIBC_2.17");
#endif
__asm__(".symver __isoc23_strtol, strtol@" OLDEST);
__asm__(".symver __isoc23_strtoull, strtoull@" OLDEST);

#endif
#endif
