//! Values that would open a container, or that the engine's command line would read as something
//! else. The text follows the value in a message: "is not …".

use std::net::IpAddr;

use crate::name;

type Checked = Result<(), String>;

fn refuse_unless(fine: bool, why: &str) -> Checked {
    if fine { Ok(()) } else { Err(why.to_owned()) }
}

/// Printable, and never an option.
fn word(text: &str) -> Checked {
    refuse_unless(!text.is_empty(), "is empty")?;
    refuse_unless(!text.starts_with('-'), "begins with `-`, like an option")?;
    refuse_unless(
        !text.chars().any(|it| it.is_control() || it.is_whitespace()),
        "contains a space or a control character",
    )
}

fn made_of(text: &str, also: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || also.contains(it);
    text.starts_with(|it: char| it.is_ascii_alphanumeric()) && text.chars().all(plain)
}

pub(super) fn program(text: &str) -> Checked {
    word(text)
}

/// The reason alone; the key is named by whoever asks.
fn reason(checked: Checked) -> Checked {
    checked.map_err(|_| "is not a name that the engine would take as one".to_owned())
}

pub(super) fn image(text: &str) -> Checked {
    reason(name::check_image(text))
}

pub(super) fn runtime(text: &str) -> Checked {
    reason(name::check_runtime(text))
}

pub(super) fn platform(text: &str) -> Checked {
    refuse_unless(
        text.contains('/') && made_of(text, "/._-"),
        "is not a platform such as `linux/amd64`",
    )
}

/// Names of containers are at most 63 long, and the sandbox's own name follows.
pub(super) fn prefix(text: &str) -> Checked {
    let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    let fine = text.starts_with(|it: char| it.is_ascii_lowercase() || it.is_ascii_digit())
        && text.len() <= 24
        && text.chars().all(plain);
    refuse_unless(
        fine,
        "is not up to 24 lower case letters, digits and `-`, beginning with a letter or a digit",
    )
}

/// An absolute path without steps upwards.
pub(super) fn path(text: &str) -> Checked {
    refuse_unless(text.starts_with('/'), "is not an absolute path")?;
    refuse_unless(
        !text.chars().any(char::is_control),
        "contains a control character",
    )?;
    refuse_unless(!text.split('/').any(|part| part == ".."), "contains `..`")
}

pub(super) fn tmpfs(text: &str) -> Checked {
    let (at, options) = text.split_once(':').unwrap_or((text, ""));
    path(at)?;
    let whole = at.chars().all(|it| it == '/');
    refuse_unless(!whole, "would hide the whole root")?;
    let fine = |option: &str| !matches!(option, "suid" | "dev");
    refuse_unless(
        options.split(',').all(fine),
        "allows set-user-id programs or devices",
    )?;
    refuse_unless(!text.contains(char::is_whitespace), "contains a space")
}

pub(super) fn network(text: &str) -> Checked {
    word(text)?;
    let shared = text == "host" || text.starts_with("container:") || text.starts_with("ns:");
    refuse_unless(!shared, "is a network of somebody else's")?;
    refuse_unless(made_of(text, "._-"), "is not the name of a network")
}

pub(super) fn user(text: &str) -> Checked {
    let number = |it: &str| {
        it.parse::<u32>()
            .ok()
            .filter(|it| it.to_string().len() < 11)
    };
    let parts = text
        .split_once(':')
        .and_then(|(uid, gid)| Some((number(uid)?, number(gid)?)));
    match parts {
        None => Err("is not `uid:gid`, two numbers".to_owned()),
        Some((0, _) | (_, 0)) => Err("is root".to_owned()),
        Some(_) => Ok(()),
    }
}

pub(super) fn capability(text: &str) -> Checked {
    let plain = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_';
    refuse_unless(
        !text.is_empty() && text.chars().all(plain),
        "is not a capability such as `ALL` or `NET_RAW`",
    )
}

pub(super) fn command(text: &str) -> Checked {
    refuse_unless(!text.trim().is_empty(), "is empty")?;
    refuse_unless(!text.contains('\0'), "contains a NUL byte")
}

pub(super) fn seccomp_profile(text: &str) -> Checked {
    refuse_unless(text != "unconfined", "switches the filter off")?;
    path(text)
}

pub(super) fn apparmor_profile(text: &str) -> Checked {
    word(text)?;
    refuse_unless(text != "unconfined", "switches the profile off")
}

pub(super) fn selinux_label(text: &str) -> Checked {
    word(text)?;
    refuse_unless(text != "disable", "switches the labels off")
}

pub(super) fn address(text: &str) -> Checked {
    refuse_unless(text.parse::<IpAddr>().is_ok(), "is not an address")
}

pub(super) fn extra_host(text: &str) -> Checked {
    let fine = text.split_once(':').is_some_and(|(name, at)| {
        made_of(name, "._-") && (at == "host-gateway" || at.parse::<IpAddr>().is_ok())
    });
    refuse_unless(fine, "is not `name:address`")
}

pub(super) fn bind(text: &str) -> Checked {
    let mut parts = text.split(':');
    let (Some(source), Some(target)) = (parts.next(), parts.next()) else {
        return Err("is not `source:target[:ro|rw]`".to_owned());
    };
    refuse_unless(
        matches!(
            (parts.next(), parts.next()),
            (None | Some("ro" | "rw"), None)
        ),
        "is not `source:target[:ro|rw]`",
    )?;
    path(source)?;
    path(target)
}

pub(super) fn ulimit(text: &str) -> Checked {
    refuse_unless(
        !text.is_empty() && text.chars().all(|it| it.is_ascii_lowercase()),
        "is not a limit such as `nofile`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case = (fn(&str) -> Checked, &'static [&'static str]);

    #[test]
    fn what_opens_a_container_is_refused() {
        let cases: [Case; 9] = [
            (
                network,
                &[
                    "host",
                    "container:db",
                    "ns:/proc/1/ns/net",
                    "--net",
                    "a b",
                    "",
                ],
            ),
            (
                user,
                &[
                    "0:0", "0:1000", "1000:0", "root", "1000", "00:5", "-1:5", "+1:0",
                ],
            ),
            (seccomp_profile, &["unconfined", "relative.json"]),
            (apparmor_profile, &["unconfined", "-x", ""]),
            (selinux_label, &["disable", ""]),
            (
                bind,
                &[
                    "/a",
                    "a:/b",
                    "/a:b",
                    "/a:/b:rx",
                    "/a:/b:ro:z",
                    "/a/../etc:/b",
                    "/a:/b:",
                ],
            ),
            (
                tmpfs,
                &["tmp", "/", "//", "/tmp:dev", "/tmp:rw,suid", "/tmp /x"],
            ),
            (program, &["", "-v", "docker run"]),
            (
                prefix,
                &["", "-x", "Upper", "a_b", "abcdefghijklmnopqrstuvwxy"],
            ),
        ];
        for (check, values) in cases {
            for value in values {
                assert!(check(value).is_err(), "{value}");
            }
        }
    }

    #[test]
    fn ordinary_values_pass() {
        let cases: [Case; 11] = [
            (network, &["bridge", "my_net-1"]),
            (user, &["1000:1000", "65534:65534"]),
            (
                bind,
                &["/srv/data:/data", "/srv/data:/data:rw", "/a b:/c:ro"],
            ),
            (
                tmpfs,
                &["/tmp", "/run:size=64m,mode=1777", "/x:nodev,nosuid"],
            ),
            (program, &["docker", "/usr/bin/podman"]),
            (platform, &["linux/amd64", "linux/arm64/v8"]),
            (address, &["1.1.1.1", "2606:4700::1111"]),
            (extra_host, &["db:10.0.0.5", "db:host-gateway", "db:::1"]),
            (capability, &["ALL", "NET_RAW"]),
            (ulimit, &["nofile", "nproc"]),
            (prefix, &["glovebox-", "g1"]),
        ];
        for (check, values) in cases {
            for value in values {
                assert_eq!(check(value), Ok(()), "{value}");
            }
        }
    }
}
