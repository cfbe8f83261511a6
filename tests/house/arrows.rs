//! Arrows between crates point one way.

use std::collections::BTreeMap;

use crate::tree::{read, repository};

/// From the bottom up: a crate may use those of the layers below its own, and no other.
const LAYERS: [&[&str]; 8] = [
    &["model"],
    &["risk", "capture", "egress", "gate"],
    &["api"],
    &[
        "skill",
        "mcp",
        "policy",
        "store",
        "workspace",
        "cage",
        "gateway",
    ],
    &["backend", "snapshot"],
    &["engine"],
    &["serve", "bench"],
    &["cli"],
];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = [
    "core", "common", "util", "utils", "helper", "helpers", "manager", "misc",
];

/// What each crate uses of the others, tests and build scripts included.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(repository().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let manifest: toml::Table = read(format!("crates/{name}/Cargo.toml")).parse().unwrap();
        let mut used = Vec::new();
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let table = manifest.get(section).and_then(toml::Value::as_table);
            used.extend(
                table
                    .into_iter()
                    .flat_map(|table| table.keys())
                    .filter_map(|key| key.strip_prefix("glovebox-"))
                    .map(str::to_owned),
            );
        }
        all.insert(name, used);
    }
    all
}

fn layer(name: &str) -> usize {
    LAYERS
        .iter()
        .position(|layer| layer.contains(&name))
        .unwrap_or_else(|| panic!("crate `{name}` has no layer: add it here and to ARCHITECTURE"))
}

#[test]
fn arrows_between_crates_point_one_way() {
    for (name, used) in dependencies() {
        for other in used {
            assert!(
                layer(&other) < layer(&name),
                "`{name}` must not use `{other}`"
            );
        }
    }
}

/// The cage runs in a forked child, the model is spoken by all: neither knows anything else.
#[test]
fn the_cage_and_the_model_stand_alone() {
    let all = dependencies();
    assert_eq!(all["model"], Vec::<String>::new());
    assert_eq!(all["cage"], Vec::<String>::new());
}

#[test]
fn no_crate_or_module_has_an_empty_name() {
    let crates = dependencies().into_keys();
    let modules = crate::tree::sources().into_iter().flat_map(|path| {
        let parts: Vec<String> = path
            .with_extension("")
            .components()
            .skip(3)
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        parts
    });
    for name in crates.chain(modules) {
        assert!(
            !EMPTY_NAMES.contains(&name.as_str()),
            "`{name}` says nothing"
        );
    }
}

#[test]
fn every_crate_takes_the_workspaces_lints_and_licence() {
    for name in dependencies().keys() {
        let manifest: toml::Table = read(format!("crates/{name}/Cargo.toml")).parse().unwrap();
        let inherits = |table: Option<&toml::Value>| {
            table
                .and_then(|it| it.get("workspace"))
                .and_then(toml::Value::as_bool)
                == Some(true)
        };
        assert!(inherits(manifest.get("lints")), "`{name}`: lints");
        for key in ["version", "edition", "rust-version", "license", "publish"] {
            assert!(inherits(manifest["package"].get(key)), "`{name}`: {key}");
        }
    }
}
