//! Runs a filter in a test as the kernel would, so that another machine's filter can be checked too.

use super::bpf::{
    AND, Instruction, JA, JEQ, JGE, JSET, LD_ABS, RET, RET_ALLOW, RET_ERRNO, RET_KILL_PROCESS,
    RET_USER_NOTIF,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Allow,
    Errno(u32),
    Kill,
    Notify,
}

/// `struct seccomp_data`.
pub(super) struct Call([u8; 64]);

impl Call {
    pub(super) fn new(number: u32, arch: u32, args: &[u64]) -> Self {
        let mut data = [0; 64];
        data[0..4].copy_from_slice(&number.to_le_bytes());
        data[4..8].copy_from_slice(&arch.to_le_bytes());
        for (index, arg) in args.iter().enumerate() {
            data[16 + 8 * index..24 + 8 * index].copy_from_slice(&arg.to_le_bytes());
        }
        Self(data)
    }
}

pub(super) fn run(program: &[Instruction], call: &Call) -> Answer {
    let mut accumulator = 0u32;
    let mut at = 0;
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let taken = match code {
            LD_ABS => {
                let offset = k as usize;
                let word: [u8; 4] = call.0[offset..offset + 4].try_into().unwrap();
                accumulator = u32::from_le_bytes(word);
                continue;
            }
            AND => {
                accumulator &= k;
                continue;
            }
            JA => {
                at += k as usize;
                continue;
            }
            RET if k == RET_ALLOW => return Answer::Allow,
            RET if k == RET_KILL_PROCESS => return Answer::Kill,
            RET if k == RET_USER_NOTIF => return Answer::Notify,
            RET if k & 0xffff_0000 == RET_ERRNO => return Answer::Errno(k & 0xffff),
            JEQ => accumulator == k,
            JGE => accumulator >= k,
            JSET => accumulator & k != 0,
            other => panic!("unknown instruction {other:#x} at {at}"),
        };
        at += usize::from(if taken { jt } else { jf });
    }
}
