//! What containers must not do: show a secret to whoever may ask their engine, let it speak to a
//! registry that a caller named, give a network past us.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use support::{Caller, Docker, Trial};

const VALUE: &str = "cnry-7f3Kq9ZtWxYwQ2vLp";
const LOOK: Duration = Duration::from_millis(5);

fn glovebox(trial: &Trial, docker: &Docker, config: &str, words: &[&str]) -> Output {
    let path = trial.home().join("config.toml");
    std::fs::write(&path, config).unwrap();
    let mut command = trial.glovebox();
    command.env("DOCKER_HOST", docker.host());
    command.arg("--config").arg(path).args(words);
    command.output().unwrap()
}

#[track_caller]
fn assert_refused(output: &Output, code: i32, says: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    for part in says {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn no_secret_stands_in_a_containers_configuration() {
    let Some(docker) = Docker::shared() else {
        return;
    };
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let mut child = trial
        .glovebox()
        .args(["secret", "set", "pass", "--deliver", "env,file,descriptor"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{VALUE}").unwrap();
    assert!(child.wait().unwrap().success());
    let run = |conversation: &str, backend: &str, delivery: &str| {
        let secret = format!("pass={delivery}");
        let words = [
            "run",
            "--scratch",
            "--backend",
            backend,
            "--secret",
            &secret,
            "--conversation",
            conversation,
            "--",
            "/bin/sh",
            "-c",
            "printf %s \"$PASS\"",
        ];
        glovebox(&trial, &docker, "", &words)
    };
    let granted = [
        "secret",
        "grant",
        "pass",
        "--conversation",
        "c-1",
        "--deliver",
        "env,file,descriptor",
    ];
    assert!(glovebox(&trial, &docker, "", &granted).status.success());
    for delivery in ["env", "file", "descriptor"] {
        // Granted or not: nobody is asked about what cannot be done.
        for conversation in ["c-1", "c-2"] {
            let refused = run(conversation, "docker", delivery);
            let says = ["error[backend_unavailable]", "`pass`", "`--backend native`"];
            assert_refused(&refused, 125, &says);
        }
    }
    let told = String::from_utf8_lossy(&run("c-1", "docker", "env").stderr).into_owned();
    assert!(told.contains("`docker inspect`"), "{told}");
    assert_eq!(docker.containers(&trial.state()), Vec::<String>::new());
    let ran = run("c-1", "native", "env");
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "[secret pass]");
    trial.end();
}

#[test]
fn the_engine_fetches_no_image_that_a_caller_names() {
    let Some(docker) = Docker::shared() else {
        return;
    };
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let registry = TcpListener::bind("127.0.0.1:0").unwrap();
    registry.set_nonblocking(true).unwrap();
    let image = format!("{}/team/tools:1", registry.local_addr().unwrap());
    let pulls = "[docker]\npull = \"missing\"\n";
    let by_caller = [
        "run",
        "--scratch",
        "--backend",
        "docker",
        "--image",
        &image,
        "--",
        "true",
    ];
    let refused = glovebox(&trial, &docker, pulls, &by_caller);
    let named = format!("`[docker] image = \"{image}\"`");
    assert_refused(&refused, 125, &["has no image", &named]);
    assert!(registry.accept().is_err(), "the engine came");
    // What the operator names is fetched, whether in `[docker]` or in a layer of policy: it comes, and
    // finds that nobody answers it.
    let by_policy = ["run", "--scratch", "--backend", "docker", "--", "true"];
    for (config, words) in [
        (format!("{pulls}image = \"{image}\"\n"), &by_caller[..]),
        (
            format!("[settings]\nimage = \"{image}\"\n{pulls}"),
            &by_policy,
        ),
    ] {
        let over = AtomicBool::new(false);
        let times = std::thread::scope(|scope| {
            // Whoever comes is sent away at once, so that the engine does not wait for an answer.
            let coming = scope.spawn(|| {
                let mut times = 0;
                while !over.load(Ordering::SeqCst) {
                    match registry.accept() {
                        Ok(_) => times += 1,
                        Err(_) => std::thread::sleep(LOOK),
                    }
                }
                times
            });
            let refused = glovebox(&trial, &docker, &config, words);
            over.store(true, Ordering::SeqCst);
            assert_refused(&refused, 125, &["has no image"]);
            coming.join().unwrap()
        });
        assert_ne!(times, 0, "the engine did not come: {config}");
    }
    assert_eq!(docker.containers(&trial.state()), Vec::<String>::new());
    trial.end();
}

#[test]
fn a_container_gets_no_network_that_is_not_ours() {
    let Some(docker) = Docker::shared() else {
        return;
    };
    let trial = Trial::in_memory(Caller::Root).unwrap();
    // The second would be asked about, if anybody could give it.
    for (network, more) in [
        ("allowlist", "allow_net = [\"ok.test:80\"]\n"),
        (
            "unrestricted",
            "[ceilings]\nnetwork = \"unrestricted\"\n[docker]\nnetwork = \"bridge\"\n",
        ),
    ] {
        let config = format!("[settings]\nnetwork = \"{network}\"\n{more}");
        let words = [
            "run",
            "--scratch",
            "--backend",
            "docker",
            "--net",
            network,
            "--",
            "true",
        ];
        let refused = glovebox(&trial, &docker, &config, &words);
        assert_refused(&refused, 125, &["egress_only", "`native` backend"]);
    }
    assert_eq!(docker.containers(&trial.state()), Vec::<String>::new());
    trial.end();
}
