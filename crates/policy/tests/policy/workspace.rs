//! `[workspace]`: what it gives, where each value came from, and what it says when it is wrong.

use std::path::Path;

use glovebox_model::{Bytes, Code, Count, Millis, Stage, Tier};
use glovebox_policy::{
    CacheName, CacheSettings, CacheSharing, Config, FileAudit, LayerName, PathRuntime,
    WorkspaceSettings,
};
use proptest::prelude::*;

const ALL: &str = r#"[workspace]
max_bytes = "5G"
max_files = 200_000
snapshot_before = "high"
snapshots_max_bytes = 1073741824
snapshots_keep_last = 7
snapshots_keep_within = "36h"
artifacts_keep_within = 60
artifacts_keep_last = 3
artifacts_max_bytes = "1.5M"
template = "/srv/template"
runtime = "wsl"
root_win = 'D:\work'
root_wsl = "/mnt/d/work"
audit = "reads"

[workspace.cache.pip]
mode = "per_user"

[workspace.cache."models-1.5"]
mode = "shared"
at = "/opt/models"
"#;

fn parse(text: &str) -> WorkspaceSettings {
    Config::parse(text, "g.toml").unwrap().workspace().clone()
}

fn cache(name: &str, mode: CacheSharing, at: &str) -> (CacheName, CacheSettings) {
    let at = at.into();
    (name.parse().unwrap(), CacheSettings { mode, at })
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn every_key_is_read() {
    assert_eq!(
        parse(ALL),
        WorkspaceSettings {
            max_bytes: Some(Bytes::mib(5 << 10)),
            max_files: Some(Count(200_000)),
            snapshot_before: Some(Tier::High),
            snapshots_max_bytes: Some(Bytes::mib(1 << 10)),
            snapshots_keep_last: Some(Count(7)),
            snapshots_keep_within: Some(Millis::secs(36 * 3600)),
            artifacts_keep_within: Some(Millis::secs(60)),
            artifacts_keep_last: Some(Count(3)),
            artifacts_max_bytes: Some(Bytes(3 << 19)),
            template: Some("/srv/template".into()),
            caches: [
                cache("pip", CacheSharing::PerUser, "/home/sandbox/.cache/pip"),
                cache("models-1.5", CacheSharing::Shared, "/opt/models"),
            ]
            .into(),
            runtime: PathRuntime::Wsl,
            root_win: some(r"D:\work"),
            root_wsl: some("/mnt/d/work"),
            audit: FileAudit::Reads,
        }
    );
}

#[test]
fn silence_means_the_defaults_and_the_example_states_them() {
    let defaults = WorkspaceSettings {
        max_bytes: None,
        max_files: None,
        snapshot_before: None,
        snapshots_max_bytes: Some(Bytes::mib(20 << 10)),
        snapshots_keep_last: Some(Count(50)),
        snapshots_keep_within: Some(Millis::secs(30 * 86_400)),
        artifacts_keep_within: None,
        artifacts_keep_last: None,
        artifacts_max_bytes: None,
        template: None,
        caches: [].into(),
        runtime: PathRuntime::Auto,
        root_win: None,
        root_wsl: None,
        audit: FileAudit::Changes,
    };
    for text in ["", "[workspace]\n", "[workspace]\ncache = {}\n"] {
        assert_eq!(parse(text), defaults);
    }
    let example = parse(include_str!("../../../../docs/config.example.toml"));
    let without_caches = WorkspaceSettings {
        caches: [].into(),
        ..example
    };
    assert_eq!(without_caches, defaults);
}

/// The lines that the example comments out are right as well.
#[test]
fn what_the_example_leaves_out_can_be_written() {
    let example = include_str!("../../../../docs/config.example.toml");
    let (_, section) = example.split_once("[workspace]\n").unwrap();
    let (section, _) = section.split_once("\n\n").unwrap();
    let mut uncommented = 0;
    let mut text = "[workspace]\n".to_owned();
    for line in section.lines() {
        uncommented += usize::from(line.starts_with("# "));
        text.push_str(line.strip_prefix("# ").unwrap_or(line));
        text.push('\n');
    }
    let settings = parse(&text);
    assert_eq!(uncommented, 5);
    assert_eq!(settings.max_bytes, Some(Bytes::mib(10 << 10)));
    assert_eq!(settings.root_win, some(r"D:\glovebox"));
}

#[test]
fn zero_sets_no_bound_on_what_is_kept() {
    let settings = parse(
        "[workspace]\nsnapshots_max_bytes = 0\nsnapshots_keep_last = 0\nsnapshots_keep_within = \"0s\"\nartifacts_keep_within = 0\nartifacts_keep_last = 0\nartifacts_max_bytes = \"0\"\n",
    );
    let unbounded = WorkspaceSettings {
        snapshots_max_bytes: None,
        snapshots_keep_last: None,
        snapshots_keep_within: None,
        ..WorkspaceSettings::default()
    };
    assert_eq!(settings, unbounded);
}

#[test]
fn a_snapshot_is_taken_from_the_named_tier_on() {
    for (word, tier) in [
        ("none", None),
        ("safe", Some(Tier::Safe)),
        ("low", Some(Tier::Low)),
        ("medium", Some(Tier::Medium)),
        ("high", Some(Tier::High)),
        ("critical", Some(Tier::Critical)),
    ] {
        let text = format!("[workspace]\nsnapshot_before = \"{word}\"\n");
        assert_eq!(parse(&text).snapshot_before, tier);
    }
}

#[test]
fn every_value_says_where_it_came_from() {
    let rows = Config::parse(ALL, "g.toml").unwrap().workspace_sources();
    let row = |field: &str| {
        let row = rows.iter().find(|it| it.field == field).unwrap();
        let line = row.by.source.as_ref().map(|it| it.line);
        (row.value.as_str(), row.by.layer, line)
    };
    let said = LayerName::Settings;
    assert_eq!(row("workspace.max_bytes"), ("5G", said, Some(2)));
    assert_eq!(row("workspace.snapshot_before"), ("high", said, Some(4)));
    assert_eq!(
        row("workspace.cache.pip"),
        ("per_user at /home/sandbox/.cache/pip", said, Some(17))
    );
    assert!(rows.iter().all(|it| it.by.layer == said), "{rows:?}");
    let silent = Config::parse("", "g.toml").unwrap().workspace_sources();
    assert_eq!(silent.len(), 14);
    for row in silent {
        assert_eq!(row.by.layer, LayerName::System);
        assert!(row.change.ends_with("under `[workspace]`"), "{row:?}");
    }
}

#[test]
fn every_mistake_is_named_with_its_place_and_the_way_out() {
    for (text, message, hint) in [
        (
            "snapshot_befor = \"low\"",
            "unknown key `snapshot_befor` under `[workspace]` (g.toml:2:1)",
            "did you mean `snapshot_before`?",
        ),
        (
            "max_bytes = 0",
            "`max_bytes`: `0` is below `64K`, the least that works (g.toml:2:13)",
            "leave it out",
        ),
        (
            "max_bytes = 1.5",
            "`max_bytes` must be a size such as `512M`, `1G` or `4096`, not a decimal number (g.toml:2:13)",
            "",
        ),
        (
            "max_files = 0",
            "`max_files` must be a whole number from 16 to 1000000000 (g.toml:2:13)",
            "leave it out",
        ),
        (
            "max_files = \"many\"",
            "`max_files` must be a whole number from 16 to 1000000000, not a string (g.toml:2:13)",
            "",
        ),
        (
            "snapshot_before = \"hgih\"",
            "`snapshot_before`: `hgih` is not one of `none`, `safe`, `low`, `medium`, `high`, `critical` (g.toml:2:19)",
            "did you mean `high`?",
        ),
        (
            "snapshot_before = true",
            "`snapshot_before` must be a string, not a boolean (g.toml:2:19)",
            "",
        ),
        (
            "snapshots_keep_last = -1",
            "`snapshots_keep_last` must be a whole number from 0 to 1000000 (g.toml:2:23)",
            "",
        ),
        (
            "snapshots_keep_within = \"2 weeks\"",
            "`snapshots_keep_within`: `2 weeks` is not a duration such as `30s`, `250ms`, `5m` or `1h` (g.toml:2:25)",
            "",
        ),
        (
            "artifacts_keep_within = \"4000d\"",
            "`artifacts_keep_within`: `96000h` is above `87600h`, the most that makes sense (g.toml:2:25)",
            "",
        ),
        (
            "template = \"templates\"",
            "`template`: `templates` is not an absolute path (g.toml:2:12)",
            "",
        ),
        (
            "template = \"/\"",
            "`template`: `/` is the whole host (g.toml:2:12)",
            "",
        ),
        (
            "runtime = \"linux\"",
            "`runtime`: `linux` is not one of `auto`, `windows`, `wsl`, `posix` (g.toml:2:11)",
            "valid here: ",
        ),
        (
            "root_win = \"/mnt/d/work\"",
            "`root_win`: `/mnt/d/work` is a path of Linux, which `root_wsl` is for (g.toml:2:12)",
            "",
        ),
        (
            "root_wsl = 'D:\\work'",
            r"`root_wsl`: `D:\\work` is a path of Windows, which `root_win` is for (g.toml:2:12)",
            "",
        ),
        (
            "cache = \"pip\"",
            "`cache` must be a table of caches, not a string (g.toml:2:9)",
            "",
        ),
        (
            "cache.mode = \"shared\"",
            "`mode` stands under `[workspace.cache]` without the name of a cache (g.toml:2:7)",
            "write it under `[workspace.cache.NAME]`",
        ),
        (
            "cache.pip = {}",
            "`[workspace.cache.pip]` does not say its `mode` (g.toml:2:7)",
            "`mode = \"per_user\"`: ",
        ),
        (
            "cache.pip = { mode = \"private\" }",
            "`mode`: `private` is not one of `shared`, `per_user` (g.toml:2:22)",
            "valid here: ",
        ),
        (
            "cache.pip = { mode = \"shared\", path = \"/opt/x\" }",
            "unknown key `path` under `[workspace.cache.pip]` (g.toml:2:32)",
            "did you mean `at`?",
        ),
        (
            "cache.pip = { mode = \"shared\", at = \"/workspace/work/c\" }",
            "`at`: `/workspace/work/c` does not lie below `/home/sandbox`, `/opt` or `/var/cache` (g.toml:2:37)",
            "",
        ),
    ] {
        let error = Config::parse(&format!("[workspace]\n{text}\n"), "g.toml").unwrap_err();
        assert_eq!(
            (error.code, error.stage),
            (Code::InvalidConfig, Stage::Parse)
        );
        assert_eq!(error.message, message);
        match hint {
            "" => {}
            hint => assert!(
                error.hints.iter().any(|it| it.starts_with(hint)),
                "{error:?}"
            ),
        }
    }
}

#[test]
fn the_access_of_sandboxes_is_told_from_the_section() {
    let error = Config::parse("workspace = \"ro\"\n", "g.toml").unwrap_err();
    assert!(error.hints[0].contains("under `[settings]`"), "{error:?}");
    for nearer in ["space", "user", "agent"] {
        let text = format!("[{nearer}.a.workspace]\nmax_bytes = \"1T\"\n");
        assert!(Config::parse(&text, "g.toml").is_err(), "{text}");
    }
}

#[test]
fn a_cache_is_named_like_one_file() {
    let long = "n".repeat(64);
    for name in ["pip", "7z", "a.b_c-d", &long] {
        assert!(name.parse::<CacheName>().is_ok(), "{name}");
    }
    let longer = "n".repeat(65);
    for name in [
        "", ".", "..", ".pip", "-pip", "_pip", "Pip", "a/b", "a..b", "a.", "a b", "é", "a\nb",
        &longer,
    ] {
        assert!(name.parse::<CacheName>().is_err(), "{name:?}");
        let text = format!("[workspace]\ncache.{name:?}.mode = \"shared\"\n");
        let error = Config::parse(&text, "g.toml").unwrap_err();
        assert!(
            error.message.starts_with("the name of the cache `"),
            "{error:?}"
        );
    }
}

/// The second would hide part of the first, or could be written where the first may only be read.
#[test]
fn no_cache_lies_in_another() {
    let at = |first: &str, second: &str| {
        let text = format!(
            "[workspace.cache.a]\nmode = \"shared\"\nat = \"{first}\"\n[workspace.cache.b]\nmode = \"per_user\"\nat = \"{second}\"\n"
        );
        Config::parse(&text, "g.toml")
    };
    for (first, second) in [
        ("/opt/x", "/opt/x"),
        ("/opt/x", "/opt/x/y/z"),
        ("/opt/x/y", "/opt/x"),
    ] {
        let error = at(first, second).unwrap_err();
        assert!(error.message.ends_with("(g.toml:6:6)"), "{error:?}");
        assert_eq!(error.hints, ["give each cache a place of its own"]);
    }
    assert!(at("/opt/x", "/opt/xy").is_ok());
    let usual = "[workspace.cache.a]\nmode = \"shared\"\nat = \"/home/sandbox/.cache\"\n[workspace.cache.b]\nmode = \"per_user\"\n";
    let error = Config::parse(usual, "g.toml").unwrap_err();
    assert!(error.message.ends_with("(g.toml:4:18)"), "{error:?}");
}

#[test]
fn the_examples_for_servers_bound_what_they_keep() {
    let production = parse(include_str!("../../../../examples/config/production.toml"));
    assert!(production.max_bytes.is_some() && production.max_files.is_some());
    assert_eq!(production.snapshot_before, Some(Tier::High));
    assert!(production.artifacts_keep_within.is_some());
    assert!(production.caches.is_empty());
    let minimal = parse(include_str!("../../../../examples/config/minimal.toml"));
    assert!(minimal.max_bytes.is_some());
    let development = parse(include_str!("../../../../examples/config/development.toml"));
    assert_eq!(development.snapshot_before, Some(Tier::Safe));
    assert_eq!(development.caches.len(), 2);
}

proptest! {
    /// Whatever is written, what is accepted lies where caches may lie and nowhere else.
    #[test]
    fn an_accepted_cache_stays_in_its_place(
        root in "(/home/sandbox|/opt|/var/cache|/workspace|/etc|/|)",
        rest in "[a./ \\\\]{0,8}",
    ) {
        let at = format!("{root}{rest}");
        let text = format!("[workspace]\ncache.a = {{ mode = \"shared\", at = '{at}' }}\n");
        if let Ok(config) = Config::parse(&text, "g.toml") {
            let name: CacheName = "a".parse().unwrap();
            let place = &config.workspace().caches[&name].at;
            prop_assert_eq!(place.as_path(), Path::new(&at));
            let names: Vec<_> = at.split('/').skip(1).collect();
            prop_assert!(!names.iter().any(|it| matches!(*it, "" | "." | "..")), "{}", at);
            let below = ["/home/sandbox/", "/opt/", "/var/cache/"];
            prop_assert!(below.iter().any(|it| at.starts_with(it)), "{}", at);
        }
    }
}
