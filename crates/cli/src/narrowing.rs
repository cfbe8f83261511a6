//! What a person leaves of a request: `memory=512M`, under the names of the configuration.

use std::str::FromStr;

use glovebox_model::{Access, HostPort, LimitField, NetworkMode, PartialProfile};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Narrowing {
    Limit(LimitField, u64),
    Network(NetworkMode),
    /// The only destinations that are left.
    AllowNet(Vec<HostPort>),
    Workspace(Access),
}

impl FromStr for Narrowing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or("write `KEY=VALUE`")?;
        if let Some(field) = LimitField::ALL.into_iter().find(|it| it.key() == key) {
            let raw = field.parse(value).map_err(|error| error.to_string())?;
            return Ok(Self::Limit(field, raw));
        }
        match key {
            "network" => {
                one_of(value, &NetworkMode::ALL.map(|it| (it.as_str(), it))).map(Self::Network)
            }
            "workspace" => one_of(value, &ACCESS).map(Self::Workspace),
            "allow_net" => {
                let hosts = value.split(',').filter(|it| !it.is_empty());
                let hosts =
                    hosts.map(|it| it.parse::<HostPort>().map_err(|error| error.to_string()));
                hosts.collect::<Result<_, _>>().map(Self::AllowNet)
            }
            _ => Err(format!("`{key}` cannot be narrowed; known are {}", known())),
        }
    }
}

const ACCESS: [(&str, Access); 3] = [
    ("none", Access::None),
    ("ro", Access::Ro),
    ("rw", Access::Rw),
];

fn one_of<T: Copy>(value: &str, all: &[(&str, T)]) -> Result<T, String> {
    let found = all.iter().find(|(word, _)| *word == value);
    found.map(|(_, it)| *it).ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|(word, _)| *word).collect();
        format!("`{value}` is not one of `{}`", words.join("`, `"))
    })
}

fn known() -> String {
    let limits = LimitField::ALL.into_iter().map(LimitField::key);
    let keys: Vec<&str> = limits
        .chain(["network", "allow_net", "workspace"])
        .collect();
    format!("`{}`", keys.join("`, `"))
}

/// Of one key given twice, the last counts.
pub(crate) fn profile(narrowings: Vec<Narrowing>) -> PartialProfile {
    let mut profile = PartialProfile::default();
    for narrowing in narrowings {
        match narrowing {
            Narrowing::Limit(field, raw) => field.set(&mut profile.limits, raw),
            Narrowing::Network(mode) => profile.network = Some(mode),
            Narrowing::AllowNet(hosts) => profile.allow_net = Some(hosts.into_iter().collect()),
            Narrowing::Workspace(access) => profile.workspace = Some(access),
        }
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::{Bytes, Millis};

    #[test]
    fn keys_are_those_of_the_configuration() {
        let read = |text: &str| text.parse::<Narrowing>();
        let all = [
            "memory=512M",
            "timeout=30s",
            "network=none",
            "workspace=ro",
            "allow_net=",
        ];
        let profile = profile(all.map(|it| read(it).unwrap()).into());
        assert_eq!(profile.limits.memory_bytes, Some(Bytes::mib(512)));
        assert_eq!(profile.limits.wall_ms, Some(Millis(30_000)));
        assert_eq!(profile.network, Some(NetworkMode::None));
        assert_eq!(profile.workspace, Some(Access::Ro));
        assert_eq!(profile.allow_net, Some([].into()));
        for wrong in [
            "memory",
            "memory=much",
            "network=some",
            "env=A",
            "workspace=",
            "allow_net=x",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("ram=1").unwrap_err().contains("`memory`"));
    }
}
