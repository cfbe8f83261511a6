//! Which skills there are: changes show at once, pins hold, and nothing is left out silently.

use std::collections::BTreeMap;
use std::fs;

use glovebox_model::Code;
use glovebox_skill::{Catalogue, Origin, Settings};
use serde_json::json;

use crate::{manifest, write};

fn of(root: &std::path::Path) -> Settings {
    Settings {
        dir: Some(root.to_owned()),
        ..Settings::default()
    }
}

#[test]
fn a_change_counts_from_the_next_question_on() {
    let root = tempfile::tempdir().unwrap();
    let catalogue = Catalogue::new(of(root.path()));
    assert_eq!(catalogue.find("a.b").unwrap_err().code, Code::NotFound);
    write(root.path(), "a.b", &manifest("a.b"));
    let first = catalogue.find("a.b").unwrap();
    // The same size at the same moment: only reading tells.
    for version in ["1.2.4", "1.2.5", "1.2.6"] {
        let mut changed = manifest("a.b");
        changed["version"] = json!(version);
        write(root.path(), "a.b", &changed);
        let now = catalogue.find("a.b").unwrap();
        assert_eq!(now.manifest().version.as_deref(), Some(version));
        assert_ne!(now.digest(), first.digest());
    }
    fs::write(root.path().join("a.b/manifest.json"), "{").unwrap();
    assert_eq!(
        catalogue.find("a.b").unwrap_err().code,
        Code::InvalidManifest
    );
    fs::remove_dir_all(root.path().join("a.b")).unwrap();
    assert_eq!(catalogue.find("a.b").unwrap_err().code, Code::NotFound);
}

#[test]
fn a_file_more_is_another_digest() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "a.b", &manifest("a.b"));
    let catalogue = Catalogue::new(of(root.path()));
    let digest = catalogue.find("a.b").unwrap().digest().to_owned();
    assert_eq!(catalogue.find("a.b").unwrap().digest(), digest);
    fs::write(root.path().join("a.b/extra.txt"), "x").unwrap();
    assert_ne!(catalogue.find("a.b").unwrap().digest(), digest);
    // As `sha256sum` prints it of the files, once more through it.
    let script =
        "find . -type f -printf '%P\\n' | LC_ALL=C sort | xargs -d '\\n' sha256sum | sha256sum";
    let said = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(root.path().join("a.b"))
        .output()
        .unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let printed = said.split_whitespace().next().unwrap();
    let digest = catalogue.find("a.b").unwrap().digest().to_owned();
    assert_eq!(digest, format!("sha256:{printed}"));
}

#[test]
fn another_digest_than_the_pinned_one_is_refused() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "a.b", &manifest("a.b"));
    let digest = Catalogue::new(of(root.path()))
        .find("a.b")
        .unwrap()
        .digest()
        .to_owned();
    let pinned = Catalogue::new(Settings {
        pin: BTreeMap::from([("a.b".to_owned(), digest)]),
        ..of(root.path())
    });
    assert!(pinned.find("a.b").is_ok());
    fs::write(root.path().join("a.b/run.py"), "print(1)").unwrap();
    let error = pinned.find("a.b").unwrap_err();
    assert_eq!(error.code, Code::InvalidManifest);
    assert!(error.message.contains("pinned"), "{error}");
    let listing = pinned.list().unwrap();
    assert_eq!(listing.invalid.len(), 1);
    // One that was shipped is held to its pin as well.
    let other = Catalogue::new(Settings {
        pin: BTreeMap::from([("shell.run".to_owned(), "sha256:0".to_owned())]),
        ..Settings::default()
    });
    assert!(other.find("shell.run").is_err());
}

#[test]
fn the_operators_own_stands_in_the_place_of_a_shipped_one() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "shell.run", &manifest("shell.run"));
    fs::write(root.path().join("README.md"), "not a skill").unwrap();
    fs::create_dir(root.path().join("_schema")).unwrap();
    let catalogue = Catalogue::new(of(root.path()));
    let skill = catalogue.find("shell.run").unwrap();
    assert!(matches!(
        skill.origin(),
        Origin::Directory { replaces: true, .. }
    ));
    assert_eq!(skill.manifest().name, "A name");
    // A broken one does not bring the shipped one back: nobody would know which was called.
    fs::write(root.path().join("shell.run/manifest.json"), "{}").unwrap();
    assert_eq!(
        catalogue.find("shell.run").unwrap_err().code,
        Code::InvalidManifest
    );
    let listing = catalogue.list().unwrap();
    assert!(listing.skills.iter().all(|it| it.id() != "shell.run"));
    assert_eq!(listing.invalid.len(), 1, "{:?}", listing.invalid);
    assert_eq!(listing.skills.len(), 8);
}

#[test]
fn without_any_skills_it_is_said_so() {
    let none = Catalogue::new(Settings {
        shipped: false,
        ..Settings::default()
    });
    assert_eq!(none.list().unwrap_err().code, Code::SkillsNotConfigured);
    assert_eq!(
        none.find("shell.run").unwrap_err().code,
        Code::SkillsNotConfigured
    );
    let gone = Catalogue::new(of("/nowhere/at/all".as_ref()));
    assert_eq!(gone.list().unwrap_err().code, Code::SkillsNotConfigured);
    let root = tempfile::tempdir().unwrap();
    let empty = Catalogue::new(Settings {
        shipped: false,
        ..of(root.path())
    });
    assert!(empty.list().unwrap().skills.is_empty());
}
