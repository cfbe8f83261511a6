//! A sandbox that stands was made from a configuration; the next exec may want another.

use std::time::Duration;

use glovebox_model::{Access, DockerConfig, Sandbox, SandboxConfig};
use jiff::Timestamp;

use crate::digest::config_hash;

/// What becomes of a sandbox whose configuration is not what the next exec wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Drift {
    None,
    /// It was used a moment ago: it stays, and whoever uses it is told.
    Keep,
    /// Nobody has used it for a while: it is made anew.
    Replace,
    /// It was used a moment ago and has more than this exec may have: neither is right.
    Refuse {
        more: &'static str,
    },
}

/// The hash of everything that is built in; time, output and traffic are limits of each exec alone.
pub(crate) fn hash_of(config: &SandboxConfig) -> String {
    let built_in = SandboxConfig {
        limits: config.limits.built_in(),
        ..config.clone()
    };
    // A type of ours without maps of odd keys: it is always JSON.
    config_hash(serde_json::to_value(built_in).unwrap_or_default())
}

pub(crate) fn drift(
    standing: &Sandbox,
    stands: bool,
    wanted: &SandboxConfig,
    now: Timestamp,
    hot: Duration,
) -> Drift {
    if standing.config_hash == hash_of(wanted) {
        return Drift::None;
    }
    // Nothing is lost with what does not stand and has nothing on disk.
    if !stands && !standing.config.keep_root {
        return Drift::Replace;
    }
    let idle = now.duration_since(standing.last_used_at);
    // A clock that was set back makes it hot, not old.
    let is_hot = Duration::try_from(idle).is_ok_and(|idle| idle < hot) || idle.is_negative();
    if !is_hot {
        return Drift::Replace;
    }
    match more_than(&standing.config, wanted) {
        Some(more) => Drift::Refuse { more },
        None => Drift::Keep,
    }
}

/// Something that the first has and the second may not have.
pub(crate) fn more_than(standing: &SandboxConfig, allowed: &SandboxConfig) -> Option<&'static str> {
    let (has, may) = (&standing.limits, &allowed.limits);
    let more = [
        ("network", standing.network > allowed.network),
        ("workspace access", access(standing) > access(allowed)),
        ("memory", has.memory_bytes > may.memory_bytes),
        ("pids", has.pids > may.pids),
        ("cpus", has.cpus_milli > may.cpus_milli),
        ("cpu time", has.cpu_ms > may.cpu_ms),
        ("disk", has.disk_bytes > may.disk_bytes),
        ("files", has.disk_files > may.disk_files),
        ("open files", has.open_files > may.open_files),
        ("gpus", has.gpus > may.gpus),
        ("tpus", has.tpus > may.tpus),
        // Which of two container settings gives more is not ours to guess.
        (
            "freedom by its container settings",
            confined(standing) != confined(allowed),
        ),
    ];
    more.into_iter()
        .find_map(|(name, is_more)| is_more.then_some(name))
}

/// The container settings that say what a program inside can reach and do; not what it is made from.
fn confined(config: &SandboxConfig) -> Option<DockerConfig> {
    let neutral = DockerConfig::default();
    config.docker.as_ref().map(|docker| DockerConfig {
        image: neutral.image,
        pull: neutral.pull,
        platform: neutral.platform,
        cli: neutral.cli,
        container_prefix: neutral.container_prefix,
        host_state_dir: neutral.host_state_dir,
        bind_roots: neutral.bind_roots,
        setup_command: neutral.setup_command,
        ..docker.clone()
    })
}

fn access(config: &SandboxConfig) -> Access {
    config.workspace
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandboxes::sample::{config, sandbox};
    use glovebox_model::NetworkMode;
    use glovebox_model::{Bytes, Count, Millis};
    use jiff::ToSpan;

    const HOT: Duration = Duration::from_secs(300);

    #[test]
    fn what_is_not_built_in_is_no_change() {
        let mut wanted = config();
        wanted.limits.wall_ms = Millis(1);
        wanted.limits.stdout_bytes = Bytes(1);
        let standing = sandbox();
        let now = standing.last_used_at;
        assert_eq!(drift(&standing, true, &wanted, now, HOT), Drift::None);
    }

    #[test]
    fn a_hot_one_is_kept_and_a_cold_one_replaced() {
        let standing = sandbox();
        let mut wanted = config();
        wanted.image = Some("another".to_owned());
        let used = standing.last_used_at;
        let at = |seconds: i64| drift(&standing, true, &wanted, used + seconds.seconds(), HOT);
        assert_eq!(at(0), Drift::Keep);
        assert_eq!(at(299), Drift::Keep);
        assert_eq!(at(300), Drift::Replace);
        assert_eq!(at(-3600), Drift::Keep, "a clock set back destroys nothing");
        let down = drift(&standing, false, &wanted, used, HOT);
        assert_eq!(down, Drift::Replace, "nothing stands that could be lost");
    }

    #[test]
    fn a_hot_container_with_other_binds_is_not_used_and_one_of_another_image_is() {
        let with = |change: fn(&mut DockerConfig)| {
            let mut docker = DockerConfig::default();
            change(&mut docker);
            SandboxConfig {
                docker: Some(docker),
                ..config()
            }
        };
        let made = with(|docker| docker.binds = vec!["/srv/a:/a".to_owned()]);
        assert!(more_than(&made, &with(|_| {})).is_some());
        assert!(more_than(&with(|_| {}), &made).is_some());
        let other = with(|docker| docker.image = "other".to_owned());
        assert_eq!(more_than(&with(|_| {}), &other), None);
    }

    #[test]
    fn a_hot_one_with_more_than_allowed_is_not_used() {
        let standing = sandbox();
        let now = standing.last_used_at;
        let mut narrower = config();
        narrower.limits.pids = Count(1);
        let refused = Drift::Refuse { more: "pids" };
        assert_eq!(drift(&standing, true, &narrower, now, HOT), refused);
        let mut wider = config();
        wider.network = NetworkMode::Unrestricted;
        wider.limits.pids = Count(10_000);
        assert_eq!(drift(&standing, true, &wider, now, HOT), Drift::Keep);
    }
}
