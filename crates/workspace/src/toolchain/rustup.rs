//! Rust by rustup. The programs in `$CARGO_HOME/bin` are proxies that need all of rustup, so the
//! selected toolchain goes before them; what `cargo install` put beside them works as it is.

use std::path::{Path, PathBuf};

use super::Downloads;
use super::draft::{Draft, Spot, Tree};
use super::entry::{Claim, Entry};
use super::host::Host;
use super::kind::Kind;
use super::text::{self, Links};
use super::version;

/// Public material, whoever downloaded it. Other registries and `git` can be private.
const PUBLIC_REGISTRY: &str = "index.crates.io-";

pub(super) fn cargo_home(host: &Host) -> Option<PathBuf> {
    host.place("CARGO_HOME", ".cargo")
}

fn rustup_home(host: &Host) -> Option<PathBuf> {
    host.place("RUSTUP_HOME", ".rustup")
}

pub(super) fn usual(host: &Host) -> Vec<PathBuf> {
    cargo_home(host)
        .map(|home| home.join("bin"))
        .into_iter()
        .collect()
}

pub(super) fn recognise(draft: &mut Draft<'_>, entry: &Entry) -> Claim {
    if let Some(home) = cargo_home(draft.host)
        && draft.below(Kind::Rustup, &entry.dir, &home).as_deref() == Some(Path::new("bin"))
    {
        proxies(draft, entry, &home);
        return Claim::Mine;
    }
    let Some(home) = rustup_home(draft.host) else {
        return Claim::NotMine;
    };
    let Some(below) = draft.below(Kind::Rustup, &entry.dir, &home) else {
        return Claim::NotMine;
    };
    let parts: Vec<&str> = below.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["toolchains", name, "bin"] => {
            toolchain(draft, entry, &home.join("toolchains"), name);
            Claim::Mine
        }
        _ => Claim::NotMine,
    }
}

fn proxies(draft: &mut Draft<'_>, entry: &Entry, cargo_home: &Path) {
    if let Some(home) = rustup_home(draft.host) {
        let settings = text::read(&home.join("settings.toml"), Links::Follow).unwrap_or_default();
        match selected(draft.host, &settings) {
            Selected::Named(name) => {
                let name = with_triple(&home.join("toolchains"), &name, &settings);
                toolchain(draft, entry, &home.join("toolchains"), &name);
            }
            Selected::ByPath => draft.note(
                "rustup: the toolchain file names a directory; if that is right, add \
                 `--toolchain DIR`"
                    .to_owned(),
            ),
            Selected::Nothing => {}
        }
    }
    let bin = cargo_home.join("bin");
    let spot = Spot {
        prefix: &bin,
        within: cargo_home,
    };
    if let Some(guest) = draft.place(Kind::Rustup, spot, Tree::Whole, "programs of cargo") {
        if entry.origin.on_path() {
            draft.bin(guest);
        }
        if draft.request.downloads == Downloads::Impossible {
            registry(draft, cargo_home);
        }
    }
}

/// Without a network, cargo builds from what is downloaded already, if it finds it.
fn registry(draft: &mut Draft<'_>, cargo_home: &Path) {
    let before = draft.size();
    for part in ["index", "cache", "src"] {
        let dir = cargo_home.join("registry").join(part);
        let names = dir.read_dir().into_iter().flatten().flatten().take(100);
        let public: Vec<PathBuf> = names
            .filter_map(|found| found.file_name().into_string().ok())
            .filter(|name| name.starts_with(PUBLIC_REGISTRY))
            .map(|name| dir.join(name))
            .collect();
        for prefix in &public {
            let spot = Spot {
                prefix,
                within: &dir,
            };
            draft.place(Kind::Rustup, spot, Tree::Whole, "downloads from crates.io");
        }
    }
    if draft.size() > before {
        draft.env("CARGO_HOME", cargo_home);
        draft.env("CARGO_NET_OFFLINE", Path::new("true"));
    }
}

fn toolchain(draft: &mut Draft<'_>, entry: &Entry, toolchains: &Path, name: &str) {
    let prefix = toolchains.join(name);
    if version::name(name).is_none() || !prefix.is_dir() {
        let named = version::name(name).unwrap_or("what the toolchain file says");
        draft.note(format!(
            "rustup: `{named}` is selected and not installed; `rustup toolchain list` lists what is"
        ));
        return;
    }
    let spot = Spot {
        prefix: &prefix,
        within: toolchains,
    };
    if let Some(guest) = draft.place(Kind::Rustup, spot, Tree::Whole, "a Rust toolchain")
        && entry.origin.on_path()
    {
        draft.bin(guest.join("bin"));
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Selected {
    Named(String),
    ByPath,
    Nothing,
}

/// As rustup does: its variable, then the nearest override or toolchain file, then the default.
fn selected(host: &Host, settings: &str) -> Selected {
    if let Some(name) = host.text_var("RUSTUP_TOOLCHAIN") {
        return Selected::Named(name.to_owned());
    }
    let overrides: Vec<(&str, &str)> = text::assignments(settings, "overrides").collect();
    for dir in text::upwards(&host.cwd) {
        if let Some((_, name)) = overrides.iter().find(|(path, _)| Path::new(path) == dir) {
            return Selected::Named((*name).to_owned());
        }
        for file in ["rust-toolchain", "rust-toolchain.toml"] {
            if let Some(text) = text::read(&dir.join(file), Links::Refuse) {
                match in_file(&text) {
                    Selected::Nothing => {}
                    found => return found,
                }
            }
        }
    }
    text::assignments(settings, "")
        .find(|(key, _)| *key == "default_toolchain")
        .map_or(Selected::Nothing, |(_, name)| {
            Selected::Named(name.to_owned())
        })
}

/// The old form is one word; the new one a table.
fn in_file(text: &str) -> Selected {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    if let (Some(only), None) = (lines.next(), lines.next())
        && !only.contains(['=', '[', '#'])
    {
        return Selected::Named(only.to_owned());
    }
    for (key, value) in text::assignments(text, "toolchain") {
        match key {
            "channel" => return Selected::Named(value.to_owned()),
            "path" => return Selected::ByPath,
            _ => {}
        }
    }
    Selected::Nothing
}

/// `stable` is installed as `stable-x86_64-unknown-linux-gnu`.
fn with_triple(toolchains: &Path, name: &str, settings: &str) -> String {
    if version::name(name).is_none() || toolchains.join(name).is_dir() {
        return name.to_owned();
    }
    let arch = std::env::consts::ARCH;
    let host = text::assignments(settings, "")
        .find(|(key, _)| *key == "default_host_triple")
        .map(|(_, triple)| triple.to_owned());
    host.into_iter()
        .chain(["gnu", "musl"].map(|libc| format!("{arch}-unknown-linux-{libc}")))
        .map(|triple| format!("{name}-{triple}"))
        .find(|full| version::name(full).is_some() && toolchains.join(full).is_dir())
        .unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_toolchain_file_are_read() {
        let named = |text: &str| Selected::Named(text.to_owned());
        assert_eq!(in_file("nightly-2026-01-01\n"), named("nightly-2026-01-01"));
        assert_eq!(
            in_file("[toolchain]\nchannel = \"1.95\"\ncomponents = [\"clippy\"]\n"),
            named("1.95")
        );
        assert_eq!(in_file("[toolchain]\npath = \"/home\"\n"), Selected::ByPath);
        assert_eq!(in_file(""), Selected::Nothing);
        assert_eq!(in_file("[toolchain]\n"), Selected::Nothing);
    }
}
