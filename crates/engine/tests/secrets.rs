//! Secrets as a process with the key has them: sealed, opened, masked, taken back, resealed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use glovebox_engine::{GrantSecret, KeySource, NewKey, Secrets, SetSecret, Vault};
use glovebox_model::{
    Code, Correlation, Delivery, ExecId, Secret, SecretName, SecretUse, SpaceId, Vouched,
};
use glovebox_store::{Actor, SecretGrantFilter, StateDir, Store};
use tempfile::TempDir;
use zeroize::Zeroizing;

const VALUE: &str = "ghp_Zk3vXq81LmNc02QpRt";
const OTHER: &str = "another-Value-2718";

struct House {
    dir: TempDir,
    state: StateDir,
    store: Store,
    vault: Vault,
}

fn house() -> House {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path().join("state")).unwrap();
    House {
        store: Store::open(&state).unwrap(),
        vault: Vault::new(&state, KeySource::Usual),
        state,
        dir,
    }
}

impl House {
    fn secrets(&self) -> Secrets<'_> {
        Secrets::new(&self.store, &self.vault)
    }

    /// As another process that has this key.
    fn with<T>(&self, source: KeySource, look: impl FnOnce(Secrets<'_>) -> T) -> T {
        let vault = Vault::new(&self.state, source);
        look(Secrets::new(&self.store, &vault))
    }

    fn key_file(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn own_key(&self) -> PathBuf {
        self.state.keys().join("secrets.key")
    }
}

fn ann() -> Actor {
    Actor {
        token_id: None,
        name: "ann".to_owned(),
    }
}

fn name(text: &str) -> SecretName {
    text.parse().unwrap()
}

fn local() -> SpaceId {
    SpaceId::local()
}

fn new(secret: &str, value: &str) -> SetSecret {
    SetSecret {
        name: name(secret),
        value: Zeroizing::new(value.as_bytes().to_vec()),
        hosts: None,
        deliveries: None,
    }
}

fn set(secrets: Secrets<'_>, secret: &str, value: &str) -> Secret {
    secrets.set(&local(), new(secret, value), &ann()).unwrap()
}

fn wanted(secret: &str, delivery: Delivery) -> SecretUse {
    SecretUse {
        name: name(secret),
        delivery,
        variable: None,
    }
}

fn ids() -> Correlation {
    Correlation {
        conversation_id: Some("talk".to_owned()),
        ..Correlation::of_space(local())
    }
}

fn opened(secrets: Secrets<'_>, secret: &str) -> glovebox_model::Result<Vec<u8>> {
    let opened = secrets.open((&ids(), Vouched::People), &[wanted(secret, Delivery::File)])?;
    Ok(opened[0].value.to_vec())
}

fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    all
}

/// Raw, encoded, or as a plain hash, against which whoever has the file could try values.
fn found_in(dir: &Path, value: &str) -> Option<PathBuf> {
    let raw = value.as_bytes().to_vec();
    let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut needles = vec![
        raw.clone(),
        hex.clone().into_bytes(),
        hex.to_uppercase().into_bytes(),
        raw.iter().rev().copied().collect(),
        blake3::hash(&raw).to_hex().as_bytes().to_vec(),
        blake3::hash(&raw).as_bytes().to_vec(),
    ];
    for skipped in 0..3 {
        let text = STANDARD.encode(&raw[skipped..]);
        // The last characters depend on what follows.
        needles.push(text.as_bytes()[..text.len() - 6].to_vec());
    }
    let all = files(dir);
    assert!(all.len() > 1);
    let has = |bytes: &[u8], needle: &[u8]| bytes.windows(needle.len()).any(|it| it == needle);
    all.into_iter()
        .find(|(_, bytes)| needles.iter().any(|needle| has(bytes, needle)))
        .map(|(path, _)| path)
}

#[test]
fn a_value_is_nowhere_in_the_state_directory() {
    let it = house();
    set(it.secrets(), "github", VALUE);
    assert_eq!(set(it.secrets(), "github", OTHER).version, 2);
    assert_eq!(opened(it.secrets(), "github").unwrap(), OTHER.as_bytes());
    it.secrets().masks(&local()).unwrap();
    for value in [VALUE, OTHER] {
        assert_eq!(found_in(it.state.path(), value), None);
    }
    // The search finds what is there.
    let leak = it.state.path().join("leak");
    fs::write(&leak, STANDARD.encode(format!("x{VALUE}"))).unwrap();
    assert_eq!(found_in(it.state.path(), VALUE), Some(leak));
}

#[test]
fn the_value_that_it_has_already_changes_nothing() {
    let it = house();
    let first = set(it.secrets(), "github", VALUE);
    let stamp = it.secrets().stamp(&local()).unwrap();
    assert_eq!(set(it.secrets(), "github", VALUE), first);
    assert_eq!(it.secrets().stamp(&local()).unwrap(), stamp);
    let bound = SetSecret {
        hosts: Some(["api.github.com:443".parse().unwrap()].into()),
        deliveries: Some([Delivery::Broker].into()),
        ..new("github", VALUE)
    };
    let bound = it.secrets().set(&local(), bound, &ann()).unwrap();
    assert_eq!((bound.version, bound.hosts.len()), (1, 1));
    // What is not said stays.
    let rotated = set(it.secrets(), "github", OTHER);
    assert_eq!(
        (rotated.version, &rotated.hosts, &rotated.deliveries),
        (2, &bound.hosts, &bound.deliveries)
    );
}

#[test]
fn weak_values_and_careless_bindings_are_refused() {
    let it = house();
    let long = "x7Q!".repeat(20_000);
    for weak in ["", "zq7x", "aaaaaaaaaaaaaaaa", "password", &long] {
        let refused = it.secrets().set(&local(), new("weak", weak), &ann());
        let error = refused.unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        let shown = format!("{error:?}");
        assert!(!error.hints.is_empty() && shown.contains("weak"), "{shown}");
        assert!(weak.is_empty() || !shown.contains(weak), "{shown}");
    }
    let broker: BTreeSet<Delivery> = [Delivery::Broker].into();
    for (hosts, deliveries) in [
        (None, Some(broker.clone())),
        (
            Some(["*.github.com:443".parse().unwrap()].into()),
            Some(broker),
        ),
        (None, Some(BTreeSet::new())),
    ] {
        let careless = SetSecret {
            hosts,
            deliveries,
            ..new("careless", VALUE)
        };
        let error = it.secrets().set(&local(), careless, &ann()).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{error}");
    }
    let page = it.secrets().list(&local(), 0, None).unwrap();
    assert!(page.items.is_empty());
    assert!(!it.own_key().exists());
}

#[test]
fn a_secret_is_opened_only_as_it_may_be_given() {
    let it = house();
    set(it.secrets(), "db.password-1", VALUE);
    let unknown = it
        .secrets()
        .open((&ids(), Vouched::People), &[wanted("none", Delivery::File)])
        .unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
    assert!(unknown.hints[0].contains("glovebox secret set none"));
    for refused in [Delivery::Env, Delivery::Broker] {
        let asked = [wanted("db.password-1", refused)];
        let error = it
            .secrets()
            .open((&ids(), Vouched::People), &asked)
            .unwrap_err();
        assert_eq!(error.code, Code::PolicyDenied, "{error}");
        assert!(error.message.contains(refused.as_str()), "{error}");
    }
    let one = wanted("db.password-1", Delivery::File);
    let opened = it
        .secrets()
        .open((&ids(), Vouched::People), std::slice::from_ref(&one));
    let opened = opened.unwrap();
    assert_eq!(opened[0].variable.as_str(), "DB_PASSWORD_1");
    assert_eq!((opened[0].version, &opened[0].grant), (1, &None));
    assert!(!format!("{opened:?}").contains("ghp_"), "{opened:?}");
    let elsewhere = Correlation::of_space("blue".parse().unwrap());
    let error = it
        .secrets()
        .open((&elsewhere, Vouched::People), &[one])
        .unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

fn for_talk() -> GrantSecret {
    GrantSecret {
        secret: name("github"),
        conversation_id: Some("talk".to_owned()),
        agent_id: None,
        deliveries: None,
        lasts: Some(Duration::from_secs(3600)),
    }
}

#[test]
fn a_grant_gives_until_it_is_revoked_and_somebody_is_told() {
    let it = house();
    let secrets = it.secrets();
    set(secrets, "github", VALUE);
    let grant = secrets.grant(&local(), for_talk(), &ann()).unwrap();
    assert_eq!(grant.granted_by, "ann");
    assert!(!grant.deliveries.contains(&Delivery::Env));
    let asked = [wanted("github", Delivery::File)];
    let opened = secrets.open((&ids(), Vouched::People), &asked).unwrap();
    assert_eq!(opened[0].grant, Some(grant.grant_id.clone()));
    let given = opened[0].given();
    assert!(secrets.stands(&local(), &given).unwrap());
    let exec = ExecId::from_random([1; 16]);
    let noted = std::slice::from_ref(&given);
    secrets.note_use(&ids(), &exec, noted).unwrap();

    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&told);
    let watch = secrets.on_revoke(move |it| hears.lock().unwrap().push(it.clone()));
    let revoked = secrets.revoke(&local(), &grant.grant_id, &ann()).unwrap();
    assert_eq!(revoked.revoked.len(), 1);
    assert_eq!(told.lock().unwrap().len(), 1);
    assert_eq!(told.lock().unwrap()[0].grant, Some(grant.grant_id));
    assert!(!secrets.stands(&local(), &given).unwrap());
    let again = secrets.note_use(&ids(), &exec, noted).unwrap_err();
    assert_eq!(again.code, Code::Conflict);
    let opened = secrets.open((&ids(), Vouched::People), &asked).unwrap();
    let without = opened[0].given();
    assert_eq!(without.grant_id, None);
    assert!(secrets.stands(&local(), &without).unwrap());

    secrets.remove(&local(), &name("github"), &ann()).unwrap();
    assert_eq!(told.lock().unwrap().len(), 2);
    assert!(!secrets.stands(&local(), &without).unwrap());
    drop(watch);
    set(secrets, "github", VALUE);
    // The same name with the same value is another secret to whoever had the first.
    assert!(!secrets.stands(&local(), &without).unwrap());
    secrets.remove(&local(), &name("github"), &ann()).unwrap();
    assert_eq!(told.lock().unwrap().len(), 2);
}

#[test]
fn a_grant_for_everybody_for_ever_or_beyond_the_secret_is_refused() {
    let it = house();
    set(it.secrets(), "github", VALUE);
    for wrong in [
        GrantSecret {
            conversation_id: None,
            ..for_talk()
        },
        GrantSecret {
            lasts: Some(Duration::from_secs(91 * 24 * 3600)),
            ..for_talk()
        },
        GrantSecret {
            lasts: Some(Duration::ZERO),
            ..for_talk()
        },
        GrantSecret {
            deliveries: Some([Delivery::Env].into()),
            ..for_talk()
        },
    ] {
        let error = it.secrets().grant(&local(), wrong, &ann()).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{error}");
    }
    let all = SecretGrantFilter::default();
    let page = it.secrets().grants(&local(), &all).unwrap();
    assert!(page.items.is_empty());
}

#[test]
fn masks_have_every_value_and_follow_other_processes() {
    let it = house();
    assert!(it.secrets().masks(&local()).unwrap().is_empty());
    // A space without secrets needs no key.
    assert!(!it.own_key().exists());
    set(it.secrets(), "github", VALUE);
    let masks = it.secrets().masks(&local()).unwrap();
    let again = it.secrets().masks(&local()).unwrap();
    assert!(Arc::ptr_eq(&masks, &again));
    assert!(!format!("{masks:?}").contains("ghp_"));
    it.with(KeySource::Usual, |other| set(other, "github", OTHER));
    let masks = it.secrets().masks(&local()).unwrap();
    let values: BTreeSet<&[u8]> = masks.iter().map(|(_, value)| value).collect();
    assert_eq!(values, [VALUE.as_bytes(), OTHER.as_bytes()].into());
    it.with(KeySource::Usual, |other| {
        other.remove(&local(), &name("github"), &ann()).unwrap()
    });
    assert!(it.secrets().masks(&local()).unwrap().is_empty());
    let blue = "blue".parse().unwrap();
    assert!(it.secrets().masks(&blue).unwrap().is_empty());
}

#[test]
fn a_wrong_or_missing_key_is_said_and_loses_nothing() {
    let it = house();
    set(it.secrets(), "github", VALUE);
    let wrong = it.key_file("wrong.key", "ab".repeat(32).as_bytes());
    it.with(KeySource::File(wrong.clone()), |secrets| {
        let other = secrets.set(&local(), new("other", VALUE), &ann());
        let same = secrets.set(&local(), new("github", VALUE), &ann());
        for error in [
            opened(secrets, "github").unwrap_err(),
            secrets.masks(&local()).unwrap_err(),
            other.unwrap_err(),
            same.unwrap_err(),
        ] {
            assert_eq!(error.code, Code::StoreUnavailable, "{error}");
            assert!(error.message.contains("wrong.key"), "{error}");
            assert!(error.hints[0].contains("--secrets-key-file"), "{error:?}");
        }
    });
    let aside = it.dir.path().join("aside");
    fs::rename(it.own_key(), &aside).unwrap();
    it.with(KeySource::Usual, |secrets| {
        let error = opened(secrets, "github").unwrap_err();
        assert_eq!(error.code, Code::StoreUnavailable, "{error}");
        let other = secrets.set(&local(), new("other", VALUE), &ann());
        assert_eq!(other.unwrap_err().code, Code::StoreUnavailable);
    });
    // No other key was made in its place.
    assert!(!it.own_key().exists());
    // The file is a key like any other, wherever it lies.
    it.with(KeySource::File(aside.clone()), |secrets| {
        assert_eq!(opened(secrets, "github").unwrap(), VALUE.as_bytes());
    });
    // Without the key everything can be removed, and then another key begins.
    it.with(KeySource::File(wrong), |secrets| {
        secrets.remove(&local(), &name("github"), &ann()).unwrap();
        set(secrets, "github", VALUE);
        assert_eq!(opened(secrets, "github").unwrap(), VALUE.as_bytes());
    });
    it.with(KeySource::File(aside), |secrets| {
        let error = opened(secrets, "github").unwrap_err();
        assert_eq!(error.code, Code::StoreUnavailable, "{error}");
    });
}

#[test]
fn a_value_in_another_place_does_not_open() {
    let it = house();
    set(it.secrets(), "one", VALUE);
    set(it.secrets(), "two", OTHER);
    let database = rusqlite::Connection::open(it.state.database()).unwrap();
    let swap = "UPDATE secret_values SET sealed =
        (SELECT sealed FROM secret_values WHERE name = 'one') WHERE name = 'two'";
    assert_eq!(database.execute(swap, ()).unwrap(), 1);
    let error = opened(it.secrets(), "two").unwrap_err();
    assert_eq!(error.code, Code::StoreUnavailable, "{error}");
    assert_eq!(opened(it.secrets(), "one").unwrap(), VALUE.as_bytes());
}

#[test]
fn another_key_takes_over_with_everything() {
    let it = house();
    let nothing = it.secrets().rotate_key(NewKey::Generated, &ann());
    assert_eq!(nothing.unwrap_err().code, Code::NotFound);
    set(it.secrets(), "github", VALUE);
    set(it.secrets(), "github", OTHER);
    let before = fs::read(it.own_key()).unwrap();
    let other = Vault::new(&it.state, KeySource::Usual);
    let other = Secrets::new(&it.store, &other);
    assert!(opened(other, "github").is_ok());

    let rotated = it.secrets().rotate_key(NewKey::Generated, &ann()).unwrap();
    assert_eq!((rotated.values, rotated.key_file), (2, None));
    assert_ne!(rotated.from, rotated.to);
    assert_ne!(fs::read(it.own_key()).unwrap(), before);
    assert!(!it.state.keys().join("secrets.key.next").exists());
    // Who had the old key finds the new one.
    for secrets in [it.secrets(), other] {
        assert_eq!(opened(secrets, "github").unwrap(), OTHER.as_bytes());
        assert!(secrets.masks(&local()).unwrap().iter().count() >= 2);
        set(secrets, "more", VALUE);
    }
    let old = it.key_file("old.key", &before);
    it.with(KeySource::File(old), |secrets| {
        assert!(opened(secrets, "github").is_err());
    });

    let own = it.key_file("own.key", "cd".repeat(32).as_bytes());
    let new = NewKey::File(own.clone());
    let rotated = it.secrets().rotate_key(new.clone(), &ann()).unwrap();
    assert_eq!(rotated.key_file.as_ref(), Some(&own));
    it.with(KeySource::File(own), |secrets| {
        assert_eq!(opened(secrets, "github").unwrap(), OTHER.as_bytes());
        let generated = secrets.rotate_key(NewKey::Generated, &ann());
        assert_eq!(generated.unwrap_err().code, Code::InvalidArgument);
        let same = secrets.rotate_key(new, &ann());
        assert_eq!(same.unwrap_err().code, Code::Conflict);
    });
    // What is not named is not found by guessing.
    it.with(KeySource::Usual, |secrets| {
        assert!(opened(secrets, "github").is_err());
    });
}

#[test]
fn keys_are_exchanged_while_others_read_and_write() {
    let it = house();
    set(it.secrets(), "github", VALUE);
    let write = |number: u32| {
        it.with(KeySource::Usual, |secrets| {
            for round in 0..10 {
                let value = format!("{VALUE}-{number}-{round}");
                set(secrets, &format!("own-{number}"), &value);
                assert_eq!(opened(secrets, "github").unwrap(), VALUE.as_bytes());
            }
        });
    };
    let rotate = || {
        it.with(KeySource::Usual, |secrets| {
            let one = |_: &i32| secrets.rotate_key(NewKey::Generated, &ann()).is_ok();
            (0..5).filter(one).count()
        })
    };
    let rotated: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3).map(|n| scope.spawn(move || write(n))).collect();
        let rotators = [scope.spawn(rotate), scope.spawn(rotate)];
        writers.into_iter().for_each(|it| it.join().unwrap());
        rotators.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert!(rotated >= 5, "{rotated}");
    it.with(KeySource::Usual, |secrets| {
        assert_eq!(opened(secrets, "github").unwrap(), VALUE.as_bytes());
        for number in 0..3 {
            let last = format!("{VALUE}-{number}-9");
            let found = opened(secrets, &format!("own-{number}")).unwrap();
            assert_eq!(found, last.as_bytes());
        }
    });
}
