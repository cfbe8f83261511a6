//! The program that lets a supervisor see calls before they are done. It denies nothing: what the
//! filter denies it denies first, and whatever this one does not know goes on.

use super::Arch;
use super::bpf::{
    ALLOW, AND, ARCH, Instruction, JEQ, JGE, JSET, LD_ABS, NR, RET, RET_USER_NOTIF, X32_BIT, arg,
    jump, op, ranges, search,
};
use crate::observe::{OPENS_NOTHING, OPENS_TO_WRITE, Shape, Watch, Watched};

const NOTIFY: Instruction = op(RET, RET_USER_NOTIF);

/// Pid 1 itself is under this filter, and nobody would answer it before the listener is handed over:
/// what it sends and opens and its end are let through by a word in the last register that only it knows.
pub(crate) fn compile(watches: &[Watch], seal: u64, arch: Arch) -> Vec<Instruction> {
    let mut program = vec![
        op(LD_ABS, ARCH),
        jump(JEQ, arch.audit(), 1, 0),
        ALLOW,
        op(LD_ABS, NR),
    ];
    if arch == Arch::X86_64 {
        program.extend([jump(JGE, X32_BIT, 0, 1), ALLOW]);
    }
    let known = Watched::all().iter().filter_map(|it| {
        let leaf = leaf(it.shape, watches, seal)?;
        Some((it.number(arch)?, leaf))
    });
    program.extend(search(&ranges(known.collect(), ALLOW)));
    program
}

/// `O_ACCMODE` and `O_WRONLY`: whatever is not opened to be written alone can be read.
const ACCESS: u32 = 0o3;
const WRITES_ONLY: u32 = 0o1;

/// None for what nobody wants to see.
fn leaf(shape: Shape, watches: &[Watch], seal: u64) -> Option<Vec<Instruction>> {
    let watched = |watch: Watch| watches.contains(&watch);
    match shape {
        Shape::Execute { .. } => watched(Watch::Processes).then(|| vec![NOTIFY]),
        Shape::End => watched(Watch::Processes).then(|| unless_sealed(seal)),
        Shape::Message { .. } => watched(Watch::Network).then(|| unless_sealed(seal)),
        Shape::Messages { .. } => watched(Watch::Network).then(|| vec![NOTIFY]),
        Shape::Address { address, .. } => watched(Watch::Network).then(|| unless_null(address)),
        Shape::Open { flags, .. } => match (watched(Watch::Writes), watched(Watch::Reads)) {
            (false, false) => None,
            (writes, reads) => Some([sealed(seal), opening(flags, writes, reads)].concat()),
        },
        Shape::Change(_) | Shape::Rename { .. } | Shape::Link { .. } | Shape::Symlink { .. } => {
            watched(Watch::Writes).then(|| vec![NOTIFY])
        }
    }
}

fn unless_sealed(seal: u64) -> Vec<Instruction> {
    [sealed(seal), vec![NOTIFY]].concat()
}

fn sealed(seal: u64) -> Vec<Instruction> {
    const LAST: u32 = 5;
    let [low, high] = [seal & u64::from(u32::MAX), seal >> 32]
        .map(|half| u32::try_from(half).unwrap_or_default());
    vec![
        op(LD_ABS, arg(LAST)),
        jump(JEQ, low, 0, 3),
        op(LD_ABS, arg(LAST) + 4),
        jump(JEQ, high, 0, 1),
        ALLOW,
    ]
}

fn unless_null(argument: u8) -> Vec<Instruction> {
    let argument = arg(u32::from(argument));
    vec![
        op(LD_ABS, argument),
        jump(JEQ, 0, 0, 3),
        op(LD_ABS, argument + 4),
        jump(JEQ, 0, 0, 1),
        ALLOW,
        NOTIFY,
    ]
}

fn opening(flags: u8, writes: bool, reads: bool) -> Vec<Instruction> {
    let mut leaf = vec![
        op(LD_ABS, arg(u32::from(flags))),
        jump(JSET, OPENS_NOTHING, 0, 1),
        ALLOW,
    ];
    if writes {
        leaf.extend([jump(JSET, OPENS_TO_WRITE, 0, 1), NOTIFY]);
    }
    leaf.extend([
        op(AND, ACCESS),
        jump(JEQ, WRITES_ONLY, 0, 1),
        ALLOW,
        if reads { NOTIFY } else { ALLOW },
    ]);
    leaf
}

#[cfg(test)]
mod tests {
    use super::super::interpret::{Answer, Call, run};
    use super::*;
    use crate::seccomp::number;

    const SEAL: u64 = 0x0123_4567_89ab_cdef;

    fn ask(watches: &[Watch], arch: Arch, name: &str, args: &[u64]) -> Option<Answer> {
        let call = Call::new(number(name, arch)?, arch.audit(), args);
        Some(run(&compile(watches, SEAL, arch), &call))
    }

    #[test]
    fn what_is_watched_is_seen_on_both_machines_and_nothing_else() {
        use Watch::{Network, Processes, Reads, Writes};
        const AT: u64 = 0x7fff_0000_1000;
        const HIGH: u64 = 0x7fff_0000_0000;
        let cases: &[(&[Watch], &str, &[u64], Answer)] = &[
            (&[Processes], "execve", &[AT], Answer::Notify),
            (&[Processes], "execveat", &[0, AT], Answer::Notify),
            (&[Processes], "exit_group", &[1], Answer::Notify),
            (
                &[Processes],
                "exit_group",
                &[1, 0, 0, 0, 0, SEAL],
                Answer::Allow,
            ),
            (
                &[Processes],
                "exit_group",
                &[1, 0, 0, 0, 0, SEAL ^ 1],
                Answer::Notify,
            ),
            (
                &[Processes],
                "exit_group",
                &[1, 0, 0, 0, 0, SEAL ^ (1 << 63)],
                Answer::Notify,
            ),
            (&[Processes], "connect", &[3, AT, 16], Answer::Allow),
            (&[Processes], "read", &[3, AT, 16], Answer::Allow),
            (&[Network], "execve", &[AT], Answer::Allow),
            (&[Network], "connect", &[3, AT, 16], Answer::Notify),
            (&[Network], "sendto", &[3, AT, 16, 0, 0, 0], Answer::Allow),
            (
                &[Network],
                "sendto",
                &[3, AT, 16, 0, AT, 16],
                Answer::Notify,
            ),
            (
                &[Network],
                "sendto",
                &[3, AT, 16, 0, HIGH, 16],
                Answer::Notify,
            ),
            (&[Network], "sendmsg", &[3, AT, 0, 0, 0, 0], Answer::Notify),
            (
                &[Network],
                "sendmsg",
                &[3, AT, 0, 0, 0, SEAL],
                Answer::Allow,
            ),
            (
                &[Network],
                "sendmmsg",
                &[3, AT, 1, 0, 0, SEAL],
                Answer::Notify,
            ),
            (&[Writes], "openat", &[0, AT, 0], Answer::Allow),
            (&[Writes], "openat", &[0, AT, 0o1], Answer::Notify),
            (&[Writes], "openat", &[0, AT, 0o2], Answer::Notify),
            (&[Writes], "openat", &[0, AT, 0o100], Answer::Notify),
            (
                &[Writes],
                "openat",
                &[0, AT, 0o2, 0, 0, SEAL],
                Answer::Allow,
            ),
            (
                &[Writes],
                "openat",
                &[0, AT, 0o2, 0, 0, !SEAL],
                Answer::Notify,
            ),
            (&[Writes], "open", &[AT, 0o1000], Answer::Notify),
            (&[Writes], "openat", &[0, AT, 0o10_000_000], Answer::Allow),
            (&[Writes], "renameat2", &[0, AT, 0, AT], Answer::Notify),
            (&[Writes], "unlinkat", &[0, AT], Answer::Notify),
            (&[Writes], "fchmodat2", &[0, AT], Answer::Notify),
            (&[Writes], "write", &[1, AT, 1], Answer::Allow),
            (&[Reads], "openat", &[0, AT, 0], Answer::Notify),
            (&[Reads], "openat", &[0, AT, 0o10_000_000], Answer::Allow),
            (&[Reads], "openat", &[0, AT, 0o1], Answer::Allow),
            (&[Writes, Reads], "openat", &[0, AT, 0o1], Answer::Notify),
            (&[], "execve", &[AT], Answer::Allow),
        ];
        for arch in [Arch::X86_64, Arch::Aarch64] {
            for (watches, name, args, expected) in cases {
                if let Some(answer) = ask(watches, arch, name, args) {
                    assert_eq!(answer, *expected, "{arch:?} {watches:?} {name}{args:x?}");
                }
            }
        }
    }

    #[test]
    fn other_tables_are_left_to_the_filter() {
        const I386: u32 = 0x4000_0003;
        const X32: u32 = 0x4000_0000;
        let program = compile(&[Watch::Processes], SEAL, Arch::X86_64);
        assert_eq!(run(&program, &Call::new(11, I386, &[])), Answer::Allow);
        let audit = Arch::X86_64.audit();
        assert_eq!(
            run(&program, &Call::new(X32 | 59, audit, &[])),
            Answer::Allow
        );
        assert_eq!(
            run(&program, &Call::new(u32::MAX, audit, &[])),
            Answer::Allow
        );
    }
}
