/* Entry points that the facade only passes on, and the table that they jump through.
 *
 * lamina_table has one pointer for each entry point, including those with a hook. It starts with one stub per entry. The
 * stub calls lamina_resolve, which finds and stores the real function, and jumps there with all arguments untouched.
 * From then on a passed call costs one jump. Two threads may resolve the same entry; both store the same pointer.
 * A stub takes 16 bytes, so that its address follows from its number. */
#ifdef __x86_64__
#define SYMBOL_TYPE @function
#define JUMP(i) endbr64; jmp *(lamina_table + 8 * i)(%rip)
#define LAZY(i) endbr64; pushq $i; jmp lamina_lazy
#elif defined(__aarch64__)
#define SYMBOL_TYPE %function
#define JUMP(i) hint 34; adrp x16, lamina_table + 8 * i; ldr x16, [x16, :lo12:lamina_table + 8 * i]; br x16
#define LAZY(i) hint 34; mov w17, i; b lamina_lazy
#else
#error "the facade supports x86-64 and aarch64"
#endif

    .text
#define HOOK(i, name, since)
#define PASS(i, name, since) .globl name; .type name, SYMBOL_TYPE; .balign 16; name: JUMP(i); .size name, . - name;
#define FORBID PASS
#include TABLE
#undef HOOK
#undef PASS
#undef FORBID

#define STUB(i, name, since) .balign 16; lamina_lazy_##i: LAZY(i);
    .globl lamina_stubs
    .hidden lamina_stubs
    .balign 16
lamina_stubs:
#define HOOK STUB
#define PASS STUB
#define FORBID STUB
#include TABLE
#undef STUB

    .globl lamina_forbidden
    .hidden lamina_forbidden
    .type lamina_forbidden, SYMBOL_TYPE
#ifdef __x86_64__
    .balign 16
lamina_forbidden:
    endbr64
    movl $FORBIDDEN, %eax
    ret

    /* On the stack: the entry's number, then the caller's return address. */
    .type lamina_lazy, @function
lamina_lazy:
    pushq %rax
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    subq $136, %rsp
    movups %xmm0, 0(%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    movl 192(%rsp), %edi
    call lamina_resolve
    movq %rax, %r11
    movups 0(%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    addq $136, %rsp
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    popq %rax
    addq $8, %rsp
    jmp *%r11
    .size lamina_lazy, . - lamina_lazy
#else
    .balign 16
lamina_forbidden:
    hint 34
    mov w0, FORBIDDEN
    ret

    /* The entry's number is in w17. */
    .type lamina_lazy, %function
lamina_lazy:
    stp x29, x30, [sp, #-224]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov w0, w17
    bl lamina_resolve
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    br x16
    .size lamina_lazy, . - lamina_lazy
#endif
    .size lamina_forbidden, . - lamina_forbidden

    .section .data.rel.local, "aw"
    .balign 64
    .globl lamina_table
    .hidden lamina_table
    .type lamina_table, %object
#undef HOOK
#undef PASS
#undef FORBID
#define SLOT(i, name, since) .quad lamina_lazy_##i;
#define HOOK SLOT
#define PASS SLOT
#define FORBID SLOT
lamina_table:
#include TABLE
    .section .note.GNU-stack, "", %progbits
