//! From table to program: a binary search over ranges of numbers, so that a call costs a handful of
//! comparisons and installing the filter stays cheap (the kernel walks it once per known number).

use serde::{Deserialize, Serialize};

use super::{Arch, Check, Filter, Group, Row, Treatment};

/// One instruction of classic BPF, laid out as `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C)]
pub struct Instruction {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

// linux/bpf_common.h and linux/filter.h.
pub(super) const LD_ABS: u16 = 0x20;
pub(super) const JA: u16 = 0x05;
pub(super) const JEQ: u16 = 0x15;
pub(super) const JGE: u16 = 0x35;
pub(super) const JSET: u16 = 0x45;
pub(super) const AND: u16 = 0x54;
pub(super) const RET: u16 = 0x06;

// linux/seccomp.h.
pub(super) const RET_KILL_PROCESS: u32 = 0x8000_0000;
pub(super) const RET_ERRNO: u32 = 0x0005_0000;
pub(super) const RET_USER_NOTIF: u32 = 0x7fc0_0000;
pub(super) const RET_ALLOW: u32 = 0x7fff_0000;

// Offsets in `struct seccomp_data`; the low half of an argument on a little-endian machine.
pub(super) const NR: u32 = 0;
pub(super) const ARCH: u32 = 4;
pub(super) const fn arg(index: u32) -> u32 {
    16 + 8 * index
}

pub(super) const X32_BIT: u32 = 0x4000_0000;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
const EPROTONOSUPPORT: u32 = 93;
const EOPNOTSUPP: u32 = 95;
const EAFNOSUPPORT: u32 = 97;

pub(super) const fn op(code: u16, k: u32) -> Instruction {
    Instruction {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}
pub(super) const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}
pub(super) const ALLOW: Instruction = op(RET, RET_ALLOW);
const fn errno(number: u32) -> Instruction {
    op(RET, RET_ERRNO | number)
}

pub(super) fn compile(filter: &Filter, table: &[Row], arch: Arch) -> Vec<Instruction> {
    let mut program = Vec::new();
    if filter.denies(Group::ForeignArch) {
        program.push(op(LD_ABS, ARCH));
        program.push(jump(JEQ, arch.audit(), 1, 0));
        program.push(op(RET, RET_KILL_PROCESS));
    }
    program.push(op(LD_ABS, NR));
    if arch == Arch::X86_64 {
        program.push(jump(JGE, X32_BIT, 0, 1));
        let answer = if filter.denies(Group::X32) {
            errno(ENOSYS)
        } else {
            ALLOW
        };
        program.push(answer);
    }
    let known = table
        .iter()
        .filter_map(|row| Some((row.number(arch)?, leaf(filter, row.treatment))));
    program.extend(search(&ranges(known.collect(), errno(ENOSYS))));
    program
}

/// Where a range starts and what happens in it, up to the next one's start.
pub(super) struct Range {
    start: u32,
    leaf: Vec<Instruction>,
}

/// What is not among the known is answered otherwise.
pub(super) fn ranges(
    mut known: Vec<(u32, Vec<Instruction>)>,
    otherwise: Instruction,
) -> Vec<Range> {
    known.sort_by_key(|(number, _)| *number);

    let mut ranges: Vec<Range> = Vec::new();
    let mut push = |start: u32, leaf: Vec<Instruction>| {
        if ranges.last().is_none_or(|last| last.leaf != leaf) {
            ranges.push(Range { start, leaf });
        }
    };
    let mut next = 0;
    for (number, leaf) in known {
        if number > next {
            push(next, vec![otherwise]);
        }
        push(number, leaf);
        next = number + 1;
    }
    push(next, vec![otherwise]);
    ranges
}

pub(super) fn search(ranges: &[Range]) -> Vec<Instruction> {
    match ranges {
        [] => vec![errno(ENOSYS)],
        [only] => only.leaf.clone(),
        _ => {
            let (low, high) = ranges.split_at(ranges.len() / 2);
            let (below, above) = (search(low), search(high));
            let pivot = high[0].start;
            let mut code = match u8::try_from(below.len()) {
                Ok(distance) => vec![jump(JGE, pivot, distance, 0)],
                // Conditional jumps reach 255 instructions; the unconditional one reaches all.
                Err(_) => {
                    let distance = u32::try_from(below.len()).unwrap_or(u32::MAX);
                    vec![jump(JGE, pivot, 0, 1), op(JA, distance)]
                }
            };
            code.extend(below);
            code.extend(above);
            code
        }
    }
}

fn leaf(filter: &Filter, treatment: Treatment) -> Vec<Instruction> {
    match treatment {
        Treatment::Allow => vec![ALLOW],
        Treatment::Deny(group) if filter.denies(group) => vec![errno(ENOSYS)],
        Treatment::Deny(_) => vec![ALLOW],
        Treatment::Check(check) => examine(filter, check),
    }
}

fn examine(filter: &Filter, check: Check) -> Vec<Instruction> {
    let when = |group: Group, code: Vec<Instruction>| {
        if filter.denies(group) {
            code
        } else {
            vec![ALLOW]
        }
    };
    match check {
        Check::CloneFlags => {
            // NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. NEWTIME cannot be asked
            // for through clone: its bit is part of the exit signal there.
            let namespaces = 0x0002_0000 | 0x7e00_0000;
            when(Group::CloneFlags, refuse_bits(0, namespaces))
        }
        Check::Fallocate => when(Group::Fallocate, vec![errno(EOPNOTSUPP)]),
        Check::ModeArg1 => when(Group::SetIdBits, refuse_bits(1, 0o6000)),
        Check::ModeArg2 => when(Group::SetIdBits, refuse_bits(2, 0o6000)),
        Check::OpenArg1 => when(Group::SetIdBits, refuse_created_bits(1)),
        Check::OpenArg2 => when(Group::SetIdBits, refuse_created_bits(2)),
        Check::NodeArg1 => node(filter, 1),
        Check::NodeArg2 => node(filter, 2),
        Check::Personality => when(
            Group::Personality,
            vec![
                op(LD_ABS, arg(0)),
                jump(JEQ, 0, 2, 0),
                jump(JEQ, 0xffff_ffff, 1, 0),
                errno(EPERM),
                ALLOW,
            ],
        ),
        Check::SocketFamily => socket(filter),
        Check::Control => control(filter),
        Check::OwnLimits => when(
            Group::OthersLimits,
            vec![op(LD_ABS, arg(0)), jump(JEQ, 0, 1, 0), errno(EPERM), ALLOW],
        ),
        Check::SocketPair => when(
            Group::SocketFamilies,
            vec![
                op(LD_ABS, arg(0)),
                jump(JEQ, UNIX, 1, 0),
                errno(EAFNOSUPPORT),
                ALLOW,
            ],
        ),
    }
}

fn refuse_bits(index: u32, bits: u32) -> Vec<Instruction> {
    vec![
        op(LD_ABS, arg(index)),
        jump(JSET, bits, 0, 1),
        errno(EPERM),
        ALLOW,
    ]
}

/// The mode counts only when the flags before it create something.
fn refuse_created_bits(flags: u32) -> Vec<Instruction> {
    const O_CREAT_OR_TMPFILE: u32 = 0o100 | 0o20_000_000;
    vec![
        op(LD_ABS, arg(flags)),
        jump(JSET, O_CREAT_OR_TMPFILE, 1, 0),
        ALLOW,
        op(LD_ABS, arg(flags + 1)),
        jump(JSET, 0o6000, 0, 1),
        errno(EPERM),
        ALLOW,
    ]
}

fn node(filter: &Filter, mode: u32) -> Vec<Instruction> {
    let mut code = Vec::new();
    if filter.denies(Group::SetIdBits) {
        code.extend([
            op(LD_ABS, arg(mode)),
            jump(JSET, 0o6000, 0, 1),
            errno(EPERM),
        ]);
    }
    if filter.denies(Group::Nodes) {
        code.extend([
            op(LD_ABS, arg(mode)),
            op(AND, 0o170_000),
            jump(JEQ, 0o020_000, 1, 0), // character device
            jump(JEQ, 0o060_000, 0, 1), // block device
            errno(EPERM),
        ]);
    }
    code.push(ALLOW);
    code
}

/// Requests that type into a terminal, and those that the file systems take for `fallocate`.
fn control(filter: &Filter) -> Vec<Instruction> {
    const TIOCSTI: u32 = 0x5412;
    const TIOCLINUX: u32 = 0x541c;
    const TIOCCONS: u32 = 0x541d;
    const RESVSP: u32 = 0x4030_5828;
    const RESVSP64: u32 = 0x4030_582a;
    const ZERO_RANGE: u32 = 0x4030_5839;
    let mut code = vec![op(LD_ABS, arg(1))];
    let mut refuse = |group: Group, requests: [u32; 3], number: u32| {
        if filter.denies(group) {
            for request in requests {
                code.extend([jump(JEQ, request, 0, 1), errno(number)]);
            }
        }
    };
    refuse(Group::TtyInjection, [TIOCSTI, TIOCLINUX, TIOCCONS], EPERM);
    refuse(Group::Fallocate, [RESVSP, RESVSP64, ZERO_RANGE], EOPNOTSUPP);
    code.push(ALLOW);
    code
}

const UNIX: u32 = 1;

fn socket(filter: &Filter) -> Vec<Instruction> {
    const INET: u32 = 2;
    const INET6: u32 = 10;
    const NETLINK: u32 = 16;
    let others = if filter.denies(Group::SocketFamilies) {
        errno(EAFNOSUPPORT)
    } else {
        ALLOW
    };
    let netlink = if filter.denies(Group::Netlink) {
        errno(EPROTONOSUPPORT)
    } else {
        ALLOW
    };
    vec![
        op(LD_ABS, arg(0)),
        jump(JEQ, UNIX, 6, 0),
        jump(JEQ, INET, 5, 0),
        jump(JEQ, INET6, 4, 0),
        jump(JEQ, NETLINK, 0, 4),
        op(LD_ABS, arg(2)),
        jump(JEQ, 0, 1, 0), // NETLINK_ROUTE: what getaddrinfo and `ip` ask
        netlink,
        ALLOW,
        others,
    ]
}
