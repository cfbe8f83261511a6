//! Names that end up as words of a container engine's command line. One that the engine would
//! read as an option is refused here, before anything is started.

/// Longer than any that is in use.
const LONGEST: usize = 255;

/// What is wrong with the name of a container runtime.
pub(crate) fn check_runtime(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    check("runtime", name, plain)
}

/// What is wrong with the name of an image.
pub(crate) fn check_image(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@+".contains(&byte);
    check("image", name, plain)
}

fn check(field: &str, name: &str, plain: impl Fn(u8) -> bool) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err(format!("`{field}` is empty"));
    }
    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    if name.len() > LONGEST {
        return Err(format!(
            "`{field}` `{shown}` is longer than {LONGEST} bytes"
        ));
    }
    if !name.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return Err(format!(
            "`{field}` `{shown}` does not begin with a letter or a digit"
        ));
    }
    match name.chars().find(|&it| !u8::try_from(it).is_ok_and(&plain)) {
        Some(other) => Err(format!(
            "`{field}` `{shown}` contains `{}`",
            other.escape_debug()
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_use_pass() {
        for name in ["runsc", "io.containerd.runsc.v1", "kata-fc", "crun"] {
            assert_eq!(check_runtime(name), Ok(()), "{name}");
        }
        for name in [
            "python:3.13",
            "registry.example.com:5000/team/app:v1",
            "debian@sha256:0123456789abcdef",
        ] {
            assert_eq!(check_image(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_name_that_would_be_an_option_is_refused() {
        for name in [
            "",
            " ",
            "--privileged",
            "-v",
            "a b",
            "a\n",
            "a\0",
            "/bin/x",
            "a=b",
            "é",
            "a;b",
            "$x",
        ] {
            assert!(check_runtime(name).is_err(), "{name:?}");
            assert!(check_image(name).is_err(), "{name:?}");
        }
        assert!(check_runtime("a/b").is_err());
        assert!(check_runtime(&"a".repeat(256)).is_err());
    }
}
