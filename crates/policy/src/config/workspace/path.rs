//! Paths as text. Whether something is there is seen by whoever opens them.

use std::path::{Path, PathBuf};

type Checked = Result<(), String>;

const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4095;

/// Inside a sandbox, what only its own programs use.
const CACHE_ROOTS: [&str; 3] = ["/home/sandbox", "/opt", "/var/cache"];

fn refuse_unless(fine: bool, why: &str) -> Checked {
    if fine { Ok(()) } else { Err(why.to_owned()) }
}

/// Written in one way only, so that equal places are equal texts.
fn plain(text: &str) -> Checked {
    refuse_unless(text.starts_with('/'), "is not an absolute path")?;
    let printable = !text.chars().any(char::is_control);
    refuse_unless(printable, "contains a control character")?;
    let mut names = text[1..].split('/');
    refuse_unless(
        names.clone().all(|name| !matches!(name, "" | "." | "..")),
        "is not written plainly, without `.`, `..` and empty names",
    )?;
    let short = text.len() <= PATH_MAX && names.all(|name| name.len() <= NAME_MAX);
    refuse_unless(short, "is too long")
}

/// Copying the whole host would copy its secrets.
pub(super) fn template(text: &str) -> Checked {
    refuse_unless(text != "/", "is the whole host")?;
    plain(text)
}

pub(super) fn cache(text: &str) -> Checked {
    plain(text)?;
    let path = Path::new(text);
    let below = |root: &str| path.starts_with(root) && path != Path::new(root);
    refuse_unless(
        CACHE_ROOTS.iter().any(|root| below(root)),
        "does not lie below `/home/sandbox`, `/opt` or `/var/cache`",
    )
}

/// The place of a cache that names none.
pub(super) fn usual(name: &str) -> PathBuf {
    Path::new("/home/sandbox/.cache").join(name)
}

fn root(text: &str) -> Checked {
    refuse_unless(!text.is_empty(), "is empty")?;
    let printable = !text.chars().any(char::is_control);
    refuse_unless(printable, "contains a control character")?;
    let up = text.split(['/', '\\']).any(|name| name == "..");
    refuse_unless(!up, "contains `..`")
}

pub(super) fn root_win(text: &str) -> Checked {
    root(text)?;
    let linux = text.starts_with('/');
    refuse_unless(!linux, "is a path of Linux, which `root_wsl` is for")?;
    let drive =
        matches!(text.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    refuse_unless(
        drive || text.starts_with(r"\\"),
        r"is not a whole path such as `D:\work`",
    )
}

pub(super) fn root_wsl(text: &str) -> Checked {
    root(text)?;
    let windows = text.starts_with('\\')
        || matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    refuse_unless(!windows, "is a path of Windows, which `root_win` is for")?;
    refuse_unless(
        text.starts_with('/') && !text.starts_with("//"),
        "is not a whole path such as `/mnt/d/work`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case = (fn(&str) -> Checked, &'static [&'static str]);

    #[test]
    fn places_that_belong_to_somebody_else_are_refused() {
        let cases: [Case; 4] = [
            (
                cache,
                &[
                    "",
                    "pip",
                    "~/.cache",
                    "/",
                    "/home",
                    "/home/sandbox",
                    "/home/sandbox/",
                    "/home/sandbox/.cache/",
                    "/home/sandbox/../other",
                    "/home/sandbox/./x",
                    "/home/sandbox//x",
                    "//home/sandbox/x",
                    "/home/sandboxes/x",
                    "/home/other/x",
                    "/opt",
                    "/opt/..",
                    "/optional/x",
                    "/var/cache",
                    "/var/lib/x",
                    "/workspace/work/x",
                    "/workspace",
                    "/usr/lib/x",
                    "/etc/x",
                    "/proc/x",
                    "/dev/shm/x",
                    "/tmp/x",
                    "/opt/a\nb",
                ],
            ),
            (
                template,
                &["", "/", "//", "template", "./x", "/srv/../etc", "/srv/a\tb"],
            ),
            (
                root_win,
                &[
                    "",
                    "/mnt/d/work",
                    "work",
                    r"\work",
                    "D:",
                    "D:work",
                    r"D:\a\..\b",
                    "D:\\a\nb",
                ],
            ),
            (
                root_wsl,
                &[
                    "",
                    r"D:\work",
                    "D:/work",
                    r"\\server\share",
                    "//server/share",
                    "work",
                    "/a/../b",
                    "/a\0b",
                ],
            ),
        ];
        for (check, values) in cases {
            for value in values {
                assert!(check(value).is_err(), "{value}");
            }
        }
        let name = "n".repeat(NAME_MAX + 1);
        assert!(cache(&format!("/opt/{name}")).is_err());
        let deep = "/opt".to_owned() + &"/n".repeat(PATH_MAX / 2);
        assert!(cache(&deep).is_err());
    }

    #[test]
    fn ordinary_places_pass() {
        let cases: [Case; 4] = [
            (
                cache,
                &[
                    "/home/sandbox/.cache/pip",
                    "/opt/models",
                    "/var/cache/apt",
                    "/home/sandbox/a, b",
                ],
            ),
            (template, &["/srv", "/srv/template"]),
            (root_win, &[r"D:\work", "D:/work", r"\\wsl$\Debian\work"]),
            (root_wsl, &["/mnt/d/work", "/srv/work/"]),
        ];
        for (check, values) in cases {
            for value in values {
                assert_eq!(check(value), Ok(()), "{value}");
            }
        }
        assert_eq!(cache(&usual("pip").to_string_lossy()), Ok(()));
    }
}
