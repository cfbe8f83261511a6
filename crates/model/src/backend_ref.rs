//! A backend as people write it: its name, and for containers their runtime after a colon.

use std::str::FromStr;

use crate::profile::{BackendName, PartialProfile};

/// `native`, `docker`, or `docker:runsc`. Whether there is such a runtime is found out where it
/// is used, like that of a runtime which is named by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendRef {
    pub name: BackendName,
    pub runtime: Option<String>,
}

impl From<BackendName> for BackendRef {
    fn from(name: BackendName) -> Self {
        let runtime = None;
        Self { name, runtime }
    }
}

impl FromStr for BackendRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, runtime) = match text.split_once(':') {
            Some((word, runtime)) => (word, Some(runtime)),
            None => (text, None),
        };
        let named = BackendName::ALL.into_iter().find(|it| it.as_str() == word);
        let name = named.ok_or_else(|| {
            let known = BackendName::ALL.map(BackendName::as_str).join("`, `");
            let shown: String = word.chars().take(80).flat_map(char::escape_debug).collect();
            format!("`{shown}` is not one of `{known}`")
        })?;
        match (name, runtime) {
            (BackendName::Docker, Some("")) => {
                Err("no runtime is named after the `:`; write `docker:runsc`, or `docker`".into())
            }
            (BackendName::Native | BackendName::Host, Some(_)) => Err(format!(
                "`{name}` has no runtime; only `docker` has, as in `docker:runsc`"
            )),
            (BackendName::Docker, Some(_)) | (_, None) => Ok(Self {
                name,
                runtime: runtime.map(str::to_owned),
            }),
        }
    }
}

impl PartialProfile {
    /// Names the backend, and the runtime if that is said with it.
    pub fn name_backend(&mut self, backend: BackendRef) -> Result<(), String> {
        self.backend = Some(backend.name);
        backend.runtime.map_or(Ok(()), |it| self.name_runtime(it))
    }

    /// Names the runtime. Whoever says it in both ways has to say the same.
    pub fn name_runtime(&mut self, runtime: String) -> Result<(), String> {
        match &self.runtime {
            Some(other) if *other != runtime => Err(format!(
                "the runtime is named twice, as `{other}` and as `{runtime}`; name it once"
            )),
            _ => {
                self.runtime = Some(runtime);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_containers_have_a_runtime_and_it_follows_a_colon() {
        let read = |text: &str| text.parse::<BackendRef>();
        for name in BackendName::ALL {
            assert_eq!(read(name.as_str()), Ok(name.into()));
        }
        let gvisor = read("docker:runsc").unwrap();
        assert_eq!(gvisor.name, BackendName::Docker);
        assert_eq!(gvisor.runtime.as_deref(), Some("runsc"));
        for wrong in [
            "",
            ":",
            "docker:",
            "native:runsc",
            "host:x",
            "Docker",
            "runsc",
            ":runsc",
            "docker ",
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_runtime_that_is_named_twice_is_the_same_one() {
        for (beside, fits) in [(None, true), (Some("runsc"), true), (Some("runc"), false)] {
            let mut profile = PartialProfile {
                runtime: beside.map(str::to_owned),
                ..PartialProfile::default()
            };
            let named = profile.name_backend("docker:runsc".parse().unwrap());
            assert_eq!(named.is_ok(), fits, "{beside:?}");
        }
    }
}
