//! Images from a registry: a real one, on this machine.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::images::archive;
use crate::trial::{Answer, Running, Trial, until};

struct Registry {
    process: Running,
    address: SocketAddr,
    storage: PathBuf,
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.process.end();
    }
}

impl Registry {
    /// `None` where there is none; in CI that is a failure.
    #[allow(clippy::print_stderr, reason = "what is skipped is said")]
    fn start(trial: &Trial) -> Option<Self> {
        for program in ["docker-registry", "skopeo"] {
            if Command::new(program).arg("--version").output().is_err() {
                assert!(std::env::var_os("CI").is_none(), "`{program}` is missing");
                eprintln!("SKIPPED: `apt-get install {program}`");
                return None;
            }
        }
        // Somebody may take its port before it does.
        let registry = (0..5).find_map(|_| Self::attempt(trial));
        assert!(registry.is_some(), "the registry does not come up");
        registry
    }

    fn attempt(trial: &Trial) -> Option<Self> {
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let storage = trial.work().join("registry");
        let config = trial.file(
            "registry.yml",
            &format!(
                "version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n\
                 storage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: '{address}'}}\n",
                storage.display()
            ),
        );
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(config);
        let mut process = Running::spawn(command.stdin(Stdio::null()));
        let is_up = until(|| match answers(address) {
            true => Some(true),
            false => process.0.try_wait().unwrap().map(|_| false),
        });
        is_up.then_some(Self {
            process,
            address,
            storage,
        })
    }

    /// Puts an image of a shell there.
    fn push(&self, trial: &Trial, name: &str) -> String {
        let saved = saved(trial);
        let to = format!("docker://{}/{name}", self.address);
        let pushed = Command::new("skopeo")
            .args([
                "--insecure-policy",
                "copy",
                "--dest-tls-verify=false",
                "--tmpdir",
            ])
            .arg(trial.work())
            .arg(format!("docker-archive:{}", saved.display()))
            .arg(&to)
            .output()
            .unwrap();
        assert!(pushed.status.success(), "{pushed:?}");
        let looked = Command::new("skopeo")
            .args([
                "inspect",
                "--tls-verify=false",
                "--format",
                "{{.Digest}}",
                &to,
            ])
            .output()
            .unwrap();
        String::from_utf8(looked.stdout).unwrap().trim().to_owned()
    }

    /// Every large file that it keeps: the layers.
    fn layers(&self) -> Vec<PathBuf> {
        let listed = Command::new("find")
            .arg(&self.storage)
            .args(["-name", "data", "-size", "+64k"])
            .output()
            .unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        listed.lines().map(PathBuf::from).collect()
    }
}

/// Whether a registry is there, and not somebody else who has the port.
fn answers(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    let mut said = Vec::new();
    let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
    let _ = stream.write_all(b"GET /v2/ HTTP/1.0\r\n\r\n");
    let _ = stream.read_to_end(&mut said);
    let said = String::from_utf8_lossy(&said).to_ascii_lowercase();
    said.contains("docker-distribution-api-version")
}

fn sha256(path: &Path) -> String {
    let summed = Command::new("sha256sum").arg(path).output().unwrap();
    let summed = String::from_utf8(summed.stdout).unwrap();
    summed.split(' ').next().unwrap().to_owned()
}

/// As `docker save` writes it.
fn saved(trial: &Trial) -> PathBuf {
    let layer = archive(trial);
    let place = trial.work().join("saved");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::rename(&layer, place.join("layer.tar")).unwrap();
    let config = json!({
        "os": "linux",
        "architecture": match std::env::consts::ARCH { "x86_64" => "amd64", _ => "arm64" },
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [
            format!("sha256:{}", sha256(&place.join("layer.tar")))
        ]},
    });
    std::fs::write(place.join("config.json"), config.to_string()).unwrap();
    let manifest = json!([{"Config": "config.json", "RepoTags": [], "Layers": ["layer.tar"]}]);
    std::fs::write(place.join("manifest.json"), manifest.to_string()).unwrap();
    let saved = trial.work().join("saved.tar");
    let made = Command::new("tar")
        .arg("-cf")
        .arg(&saved)
        .arg("-C")
        .arg(&place)
        .args(["manifest.json", "config.json", "layer.tar"])
        .status()
        .unwrap();
    assert!(made.success());
    saved
}

fn listing(trial: &Trial, registry: &Registry) -> PathBuf {
    let text = format!("[network]\nprivate = [\"{}\"]\n", registry.address);
    trial.file("listing.toml", &text)
}

fn run_with(trial: &Trial, config: &Path, words: &[&str]) -> Answer {
    let mut command = trial.command(&["--config"]);
    command.arg(config).args(words).output().unwrap().into()
}

#[test]
fn an_image_is_pulled_by_its_tag_or_digest_and_run() {
    let trial = Trial::new();
    let Some(registry) = Registry::start(&trial) else {
        return;
    };
    let digest = registry.push(&trial, "team/tools:1");
    let config = listing(&trial, &registry);
    let by_tag = format!("{}/team/tools:1", registry.address);
    let pulled = run_with(
        &trial,
        &config,
        &["image", "pull", &by_tag, "--plain-http", "--json"],
    );
    let record = pulled.exits(0).json();
    assert_eq!(record["name"], "tools:1", "{record}");
    let by_digest = format!("{}/team/tools@{digest}", registry.address);
    let words = [
        "image",
        "pull",
        &by_digest,
        "--name",
        "pinned",
        "--plain-http",
        "--json",
    ];
    let pinned = run_with(&trial, &config, &words).exits(0).json();
    assert_eq!(pinned["digest"], record["digest"]);
    let run = [
        "run",
        "--scratch",
        "--image",
        "pinned",
        "--json",
        "--",
        "/bin/sh",
        "-c",
        "echo here",
    ];
    let ran = trial.run(&run).json();
    assert_eq!(ran["stdout"], "here\n", "{ran}");

    let unknown = format!("{}/team/tools:2", registry.address);
    let missing = run_with(
        &trial,
        &config,
        &["image", "pull", &unknown, "--plain-http"],
    )
    .exits(1);
    assert!(missing.stderr.contains("error[not_found]"), "{missing:?}");
}

#[test]
fn what_was_changed_in_the_registry_is_refused_and_leaves_nothing() {
    let trial = Trial::new();
    let Some(registry) = Registry::start(&trial) else {
        return;
    };
    registry.push(&trial, "team/tools:1");
    let layers = registry.layers();
    assert_eq!(layers.len(), 1, "{layers:?}");
    let mut bytes = std::fs::read(&layers[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&layers[0], &bytes).unwrap();
    let config = listing(&trial, &registry);
    let reference = format!("{}/team/tools:1", registry.address);
    let words = ["image", "pull", &reference, "--plain-http"];
    let refused = run_with(&trial, &config, &words).exits(2);
    let said = "is not what its name says";
    assert!(refused.stderr.contains(said), "{refused:?}");
    let half = std::fs::read(&layers[0]).unwrap();
    std::fs::write(&layers[0], &half[..middle]).unwrap();
    let cut = run_with(&trial, &config, &words);
    assert_ne!(cut.code, Some(0), "{cut:?}");
    assert_eq!(trial.run(&["image", "ls", "--quiet"]).exits(0).stdout, "");
    let left: Vec<_> = std::fs::read_dir(trial.state().join("images/tmp"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_registry_that_nobody_listed_is_not_spoken_to() {
    let trial = Trial::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let reference = format!("{address}/team/tools:1");
    let refused = trial.run(&["image", "pull", &reference]).exits(125);
    assert!(refused.stderr.contains("port"), "{refused:?}");
    let refused = trial
        .run(&["image", "pull", &reference, "--plain-http"])
        .exits(3);
    assert!(refused.stderr.contains("[network] private"), "{refused:?}");
    for bad in [
        "python:3.12",
        "127.0.0.1/x",
        "localhost/x",
        "169.254.169.254/x",
    ] {
        let refused = trial.run(&["image", "pull", bad]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
    }
    assert!(listener.accept().is_err(), "somebody came");
    // Listed, but only with TLS unless it is said otherwise.
    let config = trial.file(
        "listed.toml",
        &format!("[network]\nprivate = [\"{address}\"]\n"),
    );
    drop(listener);
    let refused = run_with(&trial, &config, &["image", "pull", &reference]).exits(125);
    assert!(refused.stderr.contains("no connection"), "{refused:?}");
}
