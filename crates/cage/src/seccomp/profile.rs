//! The same list for container engines, as the JSON that they take: one architecture, so that no call
//! comes through another one's table, and no address family that leads around the network namespace.

use super::table::TABLE;
use super::{Arch, Check, Treatment};

/// Namespaces, as `clone` is asked for them.
const NAMESPACES: u32 = 0x0002_0000 | 0x7e00_0000;
/// unix, inet, inet6: those of the native filter. `AF_VSOCK`, which no network namespace closes, is
/// none of them.
const FAMILIES: [u32; 3] = [1, 2, 10];
/// With one protocol, that of routes.
const NETLINK: u32 = 16;
const ENOSYS: u32 = 38;

/// What an engine is given with `--security-opt seccomp=FILE`.
pub fn container_profile(arch: Arch) -> String {
    let (mut plain, mut denied, mut rules) = (Vec::new(), Vec::new(), String::new());
    for row in TABLE.iter().filter(|row| row.number(arch).is_some()) {
        let name = row.name;
        match row.treatment {
            Treatment::Deny(_) => denied.push(name),
            Treatment::Check(Check::CloneFlags) => {
                rules += &rule(name, &masked(0, NAMESPACES));
            }
            Treatment::Check(Check::SocketFamily) => {
                for family in FAMILIES {
                    rules += &rule(name, &equals(0, family));
                }
                let routes = [equals(0, NETLINK), equals(2, 0)].join(",");
                rules += &rule(name, &routes);
            }
            Treatment::Check(Check::SocketPair) => rules += &rule(name, &equals(0, FAMILIES[0])),
            Treatment::Check(Check::Personality) => {
                for value in [0, u32::MAX] {
                    rules += &rule(name, &equals(0, value));
                }
            }
            // Set-id bits mean nothing without new privileges, devices nothing without capabilities,
            // and no terminal of ours is in a container.
            Treatment::Allow | Treatment::Check(_) => plain.push(name),
        }
    }
    let arch = match arch {
        Arch::X86_64 => "SCMP_ARCH_X86_64",
        Arch::Aarch64 => "SCMP_ARCH_AARCH64",
    };
    let (plain, denied) = (plain.join("\",\""), denied.join("\",\""));
    // Programs fall back from what a kernel does not have, and not from what is forbidden.
    format!(
        "{{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"architectures\":[\"{arch}\"],\"syscalls\":[{rules}\
         {{\"names\":[\"{plain}\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[]}},\
         {{\"names\":[\"{denied}\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":{ENOSYS},\"args\":[]}}]}}\n"
    )
}

/// Several for one name are alternatives.
fn rule(name: &str, condition: &str) -> String {
    format!("{{\"names\":[\"{name}\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{condition}]}},")
}

fn equals(index: u32, value: u32) -> String {
    format!("{{\"index\":{index},\"value\":{value},\"valueTwo\":0,\"op\":\"SCMP_CMP_EQ\"}}")
}

/// None of these bits is set.
fn masked(index: u32, bits: u32) -> String {
    format!("{{\"index\":{index},\"value\":{bits},\"valueTwo\":0,\"op\":\"SCMP_CMP_MASKED_EQ\"}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_families_that_the_network_namespace_holds_are_open() {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            let profile = container_profile(arch);
            let rules: Vec<&str> = profile.split("{\"names\":").skip(1).collect();
            let of = |name: &str| -> Vec<&str> {
                let name = format!("\"{name}\"");
                let opens = |it: &&str| it.contains(&name) && it.contains("SCMP_ACT_ALLOW");
                rules.iter().copied().filter(opens).collect()
            };
            let sockets = of("socket");
            assert_eq!(sockets.len(), FAMILIES.len() + 1, "{sockets:?}");
            assert!(sockets.iter().all(|it| it.contains("SCMP_CMP_EQ")));
            assert!(!sockets.iter().any(|it| it.contains("\"value\":40,")));
            assert_eq!(of("socketcall").len(), 0);
            assert_eq!(profile.matches("SCMP_ARCH_").count(), 1, "no second table");
            for denied in [
                "clone3",
                "unshare",
                "setns",
                "mount",
                "ptrace",
                "bpf",
                "io_uring_setup",
            ] {
                assert_eq!(of(denied).len(), 0, "{denied}");
            }
            for (name, count) in [("read", 1), ("execve", 1), ("clone", 1), ("socketpair", 1)] {
                assert_eq!(of(name).len(), count, "{name}");
            }
        }
    }
}
