//! The system call filter: an allow-list with argument checks, compiled to classic BPF.
//!
//! Denied calls answer ENOSYS, as a kernel without them would: programs fall back, and a probe can
//! tell that the kernel's own code was never reached. Calls denied for an argument answer what the
//! kernel itself would say about that argument.

mod bpf;
#[cfg(test)]
mod interpret;
mod notify;
mod profile;
mod table;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use bpf::Instruction;
pub(crate) use notify::compile as notify;
pub use profile::container_profile;

/// The machines the filter is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    /// The machine this program was built for.
    #[cfg(target_arch = "x86_64")]
    pub const HOST: Self = Self::X86_64;
    #[cfg(target_arch = "aarch64")]
    pub const HOST: Self = Self::Aarch64;

    /// `AUDIT_ARCH_*`, from linux/audit.h.
    const fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }
}

macro_rules! groups {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// What is denied, by the power it would give. One group is one removable hardening step.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Group { $($(#[$doc])* $name),+ }
        impl Group {
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
        }
    };
}

groups! {
    Admin,
    Bpf,
    Boot,
    Clock,
    /// `clone` with a namespace flag.
    CloneFlags,
    Fanotify,
    /// Set only where disk use is watched, not counted by the kernel: `fallocate` takes space
    /// faster than anybody can watch.
    Fallocate,
    /// Calls made through another architecture's table (i386 on x86_64).
    ForeignArch,
    Handles,
    IoUring,
    Keyring,
    Modules,
    Mounts,
    Namespaces,
    /// Netlink protocols other than routing.
    Netlink,
    /// Device nodes.
    Nodes,
    Numa,
    Perf,
    Personality,
    Ports,
    SecretMemory,
    /// Set-user-id and set-group-id bits, which would land on the host's disk.
    SetIdBits,
    /// Address families other than unix, inet, inet6 and netlink.
    SocketFamilies,
    Syslog,
    Tracing,
    /// TIOCSTI, TIOCLINUX and friends: typing into somebody's terminal.
    TtyInjection,
    /// Limits of other processes: pid 1 must not be crippled.
    OthersLimits,
    /// Calls whose arguments lie in memory where a filter cannot see them.
    UnseenArguments,
    Userfault,
    X32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    CloneFlags,
    Fallocate,
    ModeArg1,
    ModeArg2,
    NodeArg1,
    NodeArg2,
    OpenArg1,
    OpenArg2,
    /// `ioctl`: terminals, and reserving space by its other name.
    Control,
    OwnLimits,
    Personality,
    SocketFamily,
    SocketPair,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    Allow,
    Deny(Group),
    Check(Check),
}

#[derive(Debug, Clone, Copy)]
struct Row {
    name: &'static str,
    x86_64: Option<u32>,
    aarch64: Option<u32>,
    treatment: Treatment,
}

impl Row {
    const fn number(&self, arch: Arch) -> Option<u32> {
        match arch {
            Arch::X86_64 => self.x86_64,
            Arch::Aarch64 => self.aarch64,
        }
    }
}

/// None for a call that this machine does not have.
pub(crate) fn number(name: &str, arch: Arch) -> Option<u32> {
    let row = table::TABLE.iter().find(|row| row.name == name)?;
    row.number(arch)
}

/// The groups that are denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    denied: Vec<Group>,
}

impl Filter {
    /// Everything denied but `Fallocate`, which depends on how the disk limit is kept.
    pub fn strict() -> Self {
        let denied = Group::ALL
            .iter()
            .copied()
            .filter(|group| *group != Group::Fallocate);
        Self {
            denied: denied.collect(),
        }
    }

    #[must_use]
    pub fn deny(mut self, group: Group) -> Self {
        if !self.denied.contains(&group) {
            self.denied.push(group);
        }
        self
    }

    #[cfg(debug_assertions)]
    pub(crate) fn allow(&mut self, group: Group) {
        self.denied.retain(|denied| *denied != group);
    }

    pub(crate) fn denies(&self, group: Group) -> bool {
        self.denied.contains(&group)
    }

    pub fn compile(&self, arch: Arch) -> Vec<Instruction> {
        bpf::compile(self, table::TABLE, arch)
    }
}

/// Programs that are there before a plan asks for them.
pub(crate) struct Compiled(Vec<(Filter, Vec<Instruction>)>);

impl Compiled {
    /// The two that every plan uses.
    pub(crate) fn usual() -> Self {
        let filters = [Filter::strict(), Filter::strict().deny(Group::Fallocate)];
        let compiled = filters.map(|filter| {
            let program = filter.compile(Arch::HOST);
            (filter, program)
        });
        Self(compiled.into())
    }

    pub(crate) fn program(&self, filter: &Filter) -> Cow<'_, [Instruction]> {
        match self.0.iter().find(|(known, _)| known == filter) {
            Some((_, program)) => Cow::Borrowed(program),
            None => Cow::Owned(filter.compile(Arch::HOST)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::interpret::{Answer, Call, run};
    use super::*;

    const EPERM: u32 = 1;
    const ENOSYS: u32 = 38;
    const EOPNOTSUPP: u32 = 95;
    const EPROTONOSUPPORT: u32 = 93;
    const EAFNOSUPPORT: u32 = 97;

    fn ask(filter: &Filter, arch: Arch, name: &str, args: &[u64]) -> Option<Answer> {
        let call = Call::new(number(name, arch)?, arch.audit(), args);
        Some(run(&filter.compile(arch), &call))
    }

    #[test]
    fn numbers_are_those_of_the_c_library() {
        for (name, here) in [
            ("read", libc::SYS_read),
            ("execve", libc::SYS_execve),
            ("openat", libc::SYS_openat),
            ("mount_setattr", libc::SYS_mount_setattr),
            ("clone3", libc::SYS_clone3),
            ("fchmodat2", libc::SYS_fchmodat2),
            ("ptrace", libc::SYS_ptrace),
        ] {
            assert_eq!(
                number(name, Arch::HOST).map(i64::from),
                Some(here),
                "{name}"
            );
        }
        // A few of the other machine's, from its own table.
        for (name, there) in [
            ("read", 63),
            ("execve", 221),
            ("openat", 56),
            ("clone", 220),
        ] {
            assert_eq!(number(name, Arch::Aarch64), Some(there), "{name}");
        }
        assert_eq!(number("open", Arch::Aarch64), None);
    }

    #[test]
    fn each_row_gets_its_treatment_on_both_machines() {
        let filter = Filter::strict();
        for arch in [Arch::X86_64, Arch::Aarch64] {
            for row in table::TABLE {
                let Some(answer) = ask(&filter, arch, row.name, &[0; 6]) else {
                    continue;
                };
                match row.treatment {
                    Treatment::Allow => assert_eq!(answer, Answer::Allow, "{}", row.name),
                    Treatment::Deny(_) => {
                        assert_eq!(answer, Answer::Errno(ENOSYS), "{}", row.name);
                    }
                    Treatment::Check(_) => {}
                }
            }
        }
    }

    #[test]
    fn arguments_are_checked_on_both_machines() {
        const NEWUSER: u64 = 0x1000_0000;
        const O_CREAT: u64 = 0o100;
        let filter = Filter::strict().deny(Group::Fallocate);
        let cases: &[(&str, &[u64], Answer)] = &[
            ("clone", &[17], Answer::Allow),
            ("clone", &[NEWUSER | 17], Answer::Errno(EPERM)),
            ("clone", &[0x2_0000], Answer::Errno(EPERM)),
            ("socket", &[2, 1, 0], Answer::Allow),
            ("socket", &[1, 1, 0], Answer::Allow),
            ("socket", &[16, 3, 0], Answer::Allow),
            ("socket", &[16, 3, 12], Answer::Errno(EPROTONOSUPPORT)),
            ("socket", &[17, 3, 0], Answer::Errno(EAFNOSUPPORT)),
            ("socket", &[38, 5, 0], Answer::Errno(EAFNOSUPPORT)),
            ("ioctl", &[0, 0x5412], Answer::Errno(EPERM)),
            ("ioctl", &[0, 0xffff_ffff_0000_5412], Answer::Errno(EPERM)),
            ("ioctl", &[0, 0x541c], Answer::Errno(EPERM)),
            ("ioctl", &[0, 0x5413], Answer::Allow),
            ("fchmod", &[3, 0o755], Answer::Allow),
            ("fchmod", &[3, 0o4755], Answer::Errno(EPERM)),
            ("fchmodat", &[3, 0, 0o2755], Answer::Errno(EPERM)),
            ("fchmodat2", &[3, 0, 0o6755, 0], Answer::Errno(EPERM)),
            ("chmod", &[0, 0o4755], Answer::Errno(EPERM)),
            ("openat", &[0, 0, O_CREAT, 0o4755], Answer::Errno(EPERM)),
            ("openat", &[0, 0, O_CREAT, 0o644], Answer::Allow),
            ("openat", &[0, 0, 0, 0o4755], Answer::Allow),
            (
                "openat",
                &[0, 0, 0o20_200_000, 0o4755],
                Answer::Errno(EPERM),
            ),
            ("open", &[0, O_CREAT, 0o4755], Answer::Errno(EPERM)),
            ("creat", &[0, 0o4755], Answer::Errno(EPERM)),
            ("mknodat", &[0, 0, 0o010_600, 0], Answer::Allow),
            ("mknodat", &[0, 0, 0o060_600, 0], Answer::Errno(EPERM)),
            ("mknodat", &[0, 0, 0o020_600, 0], Answer::Errno(EPERM)),
            ("mknodat", &[0, 0, 0o104_755, 0], Answer::Errno(EPERM)),
            ("mknod", &[0, 0o060_600, 0], Answer::Errno(EPERM)),
            ("personality", &[0xffff_ffff], Answer::Allow),
            ("personality", &[0], Answer::Allow),
            ("personality", &[0x004_0000], Answer::Errno(EPERM)),
            ("fallocate", &[1, 0, 0, 1], Answer::Errno(EOPNOTSUPP)),
            ("ioctl", &[3, 0x4030_5828], Answer::Errno(EOPNOTSUPP)),
            ("ioctl", &[3, 0x4030_582a], Answer::Errno(EOPNOTSUPP)),
            ("ioctl", &[3, 0x4030_5839], Answer::Errno(EOPNOTSUPP)),
            ("socketpair", &[1, 1, 0], Answer::Allow),
            ("socketpair", &[17, 3, 0], Answer::Errno(EAFNOSUPPORT)),
            ("socketpair", &[30, 5, 0], Answer::Errno(EAFNOSUPPORT)),
            ("prlimit64", &[0, 7], Answer::Allow),
            ("prlimit64", &[1, 7], Answer::Errno(EPERM)),
        ];
        for arch in [Arch::X86_64, Arch::Aarch64] {
            for (name, args, expected) in cases {
                let Some(answer) = ask(&filter, arch, name, args) else {
                    continue;
                };
                assert_eq!(answer, *expected, "{arch:?} {name}{args:?}");
            }
        }
    }

    #[test]
    fn other_tables_and_unknown_numbers_are_refused() {
        let filter = Filter::strict();
        const I386: u32 = 0x4000_0003;
        const X32: u32 = 0x4000_0000;
        let program = filter.compile(Arch::X86_64);
        assert_eq!(run(&program, &Call::new(4, I386, &[])), Answer::Kill);
        let audit = Arch::X86_64.audit();
        assert_eq!(
            run(&program, &Call::new(X32 | 1, audit, &[])),
            Answer::Errno(ENOSYS)
        );
        for unknown in [335, 400, 471, 500, 10_000, u32::MAX] {
            assert_eq!(
                run(&program, &Call::new(unknown, audit, &[])),
                Answer::Errno(ENOSYS)
            );
        }
        let program = filter.compile(Arch::Aarch64);
        assert_eq!(run(&program, &Call::new(63, audit, &[])), Answer::Kill);
    }

    #[test]
    fn fallocate_is_denied_only_where_disk_is_watched() {
        let answer = ask(&Filter::strict(), Arch::HOST, "fallocate", &[1, 0, 0, 1]);
        assert_eq!(answer, Some(Answer::Allow));
    }

    #[test]
    fn the_program_fits_the_kernel() {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            assert!(Filter::strict().compile(arch).len() < 4096);
        }
    }
}
