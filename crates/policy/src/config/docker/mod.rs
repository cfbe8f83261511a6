//! `[docker]` and `[agent.NAME.docker]`: how containers are made, for all and for one agent.

mod check;
mod read;
mod source;

use std::collections::BTreeMap;

use glovebox_model::{Bytes, DockerConfig, Pull, Ulimit};

pub(super) use read::{Whose, read_docker};
pub(super) use source::sources;

/// Declares the keys once: what a section says, how it is laid over a configuration, and the list
/// for messages and reports, so that none of them can forget a key.
macro_rules! docker_keys {
    (
        plain { $($plain:ident: $plain_type:ty,)+ }
        optional { $($optional:ident: $optional_type:ty,)+ }
    ) => {
        /// What one section says; an unset field has no opinion.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub(super) struct DockerSection {
            $($plain: Option<$plain_type>,)+
            $($optional: Option<$optional_type>,)+
            env: BTreeMap<String, String>,
            ulimits: BTreeMap<String, Ulimit>,
            binds: Vec<String>,
            file: String,
            /// Where each key stands, those of `env` and `ulimits` as `env.NAME`.
            lines: BTreeMap<String, u32>,
        }

        const REPLACED: &[&str] = &[$(stringify!($plain),)+ $(stringify!($optional),)+];

        impl DockerSection {
            /// Lays what this section says over what wider ones said.
            fn apply(&self, config: &mut DockerConfig) {
                $(if let Some(said) = &self.$plain {
                    config.$plain = said.clone();
                })+
                $(if let Some(said) = &self.$optional {
                    config.$optional = Some(said.clone());
                })+
                config.env.extend(self.env.clone());
                config.ulimits.extend(self.ulimits.clone());
                config.binds.extend(self.binds.iter().cloned());
            }
        }

        /// Every key that a nearer section replaces, with its value as text.
        fn shown(config: &DockerConfig) -> Vec<(&'static str, String)> {
            vec![
                $((stringify!($plain), source::Shown::show(&config.$plain)),)+
                $((stringify!($optional), source::Shown::show(&config.$optional)),)+
            ]
        }
    };
}

docker_keys! {
    plain {
        cli: String,
        image: String,
        pull: Pull,
        container_prefix: String,
        read_only_root: bool,
        tmpfs: Vec<String>,
        user: String,
        cap_drop: Vec<String>,
        dns: Vec<String>,
        extra_hosts: Vec<String>,
        bind_roots: Vec<String>,
        publish: Vec<u16>,
    }
    optional {
        platform: String,
        runtime: String,
        network: String,
        setup_command: String,
        memory_swap: Bytes,
        seccomp_profile: String,
        apparmor_profile: String,
        selinux_label: String,
        shm_size: Bytes,
        host_state_dir: String,
    }
}

/// Keys that are merged and not replaced.
const MERGED: [&str; 3] = ["env", "ulimits", "binds"];

/// Keys that say how Glovebox reaches the engine and what an operator lets agents bind: the same
/// for every agent, else a section of an agent could widen them.
const FOR_ALL: [&str; 4] = ["cli", "bind_roots", "host_state_dir", "container_prefix"];

/// The sections laid over the defaults, the widest first.
pub(super) fn merged<'s>(sections: impl IntoIterator<Item = &'s DockerSection>) -> DockerConfig {
    let mut config = DockerConfig::default();
    for section in sections {
        section.apply(&mut config);
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_model_is_a_key() {
        let config = serde_json::to_value(DockerConfig::default()).unwrap();
        let mut fields: Vec<_> = config.as_object().unwrap().keys().cloned().collect();
        let mut keys: Vec<String> = REPLACED
            .iter()
            .chain(&MERGED)
            .map(|key| (*key).to_owned())
            .collect();
        fields.sort();
        keys.sort();
        assert_eq!(keys, fields);
    }
}
