//! A registry whose tokens end while an image is pulled.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use sha2::{Digest, Sha256};
use support::{Asked, Caller, Said, Site, Trial};

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// An image of one file: its manifest, and its parts by their paths.
fn image(trial: &Trial) -> Vec<(String, &'static str, Vec<u8>)> {
    trial.put("hello", "hello\n");
    let tar = Command::new("tar")
        .args(["-cf", "-", "hello"])
        .current_dir(trial.work())
        .output()
        .unwrap();
    assert!(tar.status.success(), "{tar:?}");
    let layer = tar.stdout;
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        _ => "arm64",
    };
    let config = json!({"os": "linux", "architecture": machine, "config": {},
                        "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]}});
    let config = config.to_string().into_bytes();
    let part = |kind: &str, bytes: &[u8]| {
        json!({"mediaType": format!("application/vnd.oci.image.{kind}"),
               "digest": digest(bytes), "size": bytes.len()})
    };
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": kind,
                          "config": part("config.v1+json", &config),
                          "layers": [part("layer.v1.tar", &layer)]});
    let blob = |bytes: Vec<u8>| {
        let path = format!("/v2/tools/blobs/{}", digest(&bytes));
        (path, "application/octet-stream", bytes)
    };
    let manifest = manifest.to_string().into_bytes();
    vec![
        ("/v2/tools/manifests/1".to_owned(), kind, manifest),
        blob(config),
        blob(layer),
    ]
}

/// Each token is good for so many requests.
fn registry(trial: &Trial, uses: u64) -> Site {
    let (parts, issued) = (image(trial), AtomicU64::new(0));
    let left = AtomicU64::new(0);
    Site::open(move |asked: &Asked| {
        let header = |name: &str| {
            let found = asked.headers.iter().find(|(it, _)| it == name);
            found.map(|(_, it)| it.as_str())
        };
        if asked.path.starts_with("/token?") {
            let number = issued.fetch_add(1, Ordering::SeqCst) + 1;
            left.store(uses, Ordering::SeqCst);
            let token = json!({"token": format!("t{number}")}).to_string();
            return Said::page("application/json", token);
        }
        let current = format!("Bearer t{}", issued.load(Ordering::SeqCst));
        let is_good = header("authorization") == Some(current.as_str())
            && left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1))
                .is_ok();
        if !is_good {
            let realm = format!("Bearer realm=\"http://{}/token\"", header("host").unwrap());
            return Said::status(401).with("WWW-Authenticate", &realm);
        }
        match parts.iter().find(|(path, ..)| *path == asked.path) {
            Some((_, kind, bytes)) => Said::page(kind, bytes.clone()),
            None => Said::status(404),
        }
    })
}

fn pull(trial: &Trial, site: &Site) -> std::process::Output {
    let config = trial.home().join("config.toml");
    let text = format!("[network]\nprivate = [\"{}\"]\n", site.address());
    std::fs::write(&config, text).unwrap();
    let mut command = trial.glovebox();
    command.arg("--config").arg(config).args(["image", "pull"]);
    command.arg(format!("{}/tools:1", site.address()));
    command.arg("--plain-http").output().unwrap()
}

#[test]
fn a_token_that_ends_on_the_way_is_asked_for_again() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let site = registry(&trial, 1);
    let pulled = pull(&trial, &site);
    assert!(pulled.status.success(), "{pulled:?}");
    let asked = site.asked();
    let tokens: Vec<&Asked> = asked
        .iter()
        .filter(|it| it.path.starts_with("/token?"))
        .collect();
    // One for the manifest, and one for each part.
    assert_eq!(tokens.len(), 3, "{asked:?}");
    for token in tokens {
        let sent = token.headers.iter().any(|(it, _)| it == "authorization");
        assert!(!sent, "an old token went with the question: {token:?}");
    }
    trial.end();
}

#[test]
fn a_token_that_is_refused_when_it_is_new_is_not_asked_for_without_end() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let site = registry(&trial, 0);
    let refused = pull(&trial, &site);
    assert!(!refused.status.success(), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("without an account"), "{said}");
    assert_eq!(site.asked().len(), 3, "{:?}", site.asked());
    trial.end();
}
