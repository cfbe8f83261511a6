//! A container that stands between execs.

use std::time::{Duration, Instant};

use glovebox_backend::Ending;
use glovebox_model::{Bytes, Code, DockerConfig, LimitKind, Millis};

use crate::harness::{Asked, House, Outcome, shared};

macro_rules! both {
    ($($name:ident;)+) => {
        mod runc {
            $(#[test] fn $name() -> super::Outcome { super::on("runc", super::$name) })+
        }
        mod runsc {
            $(#[test] fn $name() -> super::Outcome { super::on("runsc", super::$name) })+
        }
    };
}

both! {
    state_stays_and_processes_do_not;
    artifacts_are_each_execs_own;
    time_is_up_and_it_stands_again;
    ends_and_refusals;
}

fn on(runtime: &str, test: fn(House) -> Outcome) -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let config = DockerConfig {
        read_only_root: false,
        tmpfs: vec!["/run".to_owned()],
        ..DockerConfig::default()
    };
    test(House::with(&host, runtime, config))
}

fn state_stays_and_processes_do_not(house: House) -> Outcome {
    let name = house.name();
    let mut kept = house.keep(&name)?;
    let kept = kept.as_mut();
    let script = "echo here > /var/tmp/mine; (trap '' TERM HUP; exec sleep 300) >/dev/null 2>&1 & \
        setsid sleep 301 >/dev/null 2>&1 & echo left";
    let said = house.exec(kept, &["bash", "-c", script]);
    assert_eq!(
        (said.stdout.as_str(), said.code()),
        ("left\n", 0),
        "{}",
        said.stderr
    );
    let count = "cat /var/tmp/mine; for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; done | \
        grep -c 'sleep 30[01]'";
    let said = house.exec(kept, &["sh", "-c", count]);
    assert_eq!(said.stdout, "here\n0\n", "{}", said.stderr);
    // The one that waits is nobody an exec can end.
    let said = house.exec(kept, &["sh", "-c", "kill -9 -1; kill -9 1; echo alive"]);
    assert_eq!(said.stdout, "alive\n", "{}", said.stderr);
    assert!(kept.is_alive());
    // After a restart from outside it is found again, with its root.
    house.engine(&["stop", "--time=0", name.as_str()]);
    assert!(!kept.is_alive());
    let mut again = house
        .docker
        .adopt(&name, &house.profile)?
        .expect("it is there");
    let said = house.exec(again.as_mut(), &["cat", "/var/tmp/mine"]);
    assert_eq!(said.stdout, "here\n");
    house.engine(&["pause", name.as_str()]);
    assert!(again.is_alive());
    assert_eq!(house.exec(again.as_mut(), &["true"]).code(), 0);
    drop(again.close());
    assert!(house.docker.adopt(&name, &house.profile)?.is_none());
    Ok(())
}

fn artifacts_are_each_execs_own(house: House) -> Outcome {
    let mut kept = house.keep(&house.name())?;
    let kept = kept.as_mut();
    std::fs::write(house.path("room/inputs/n"), "1")?;
    let script = "cat /workspace/inputs/n; mkdir /workspace/artifacts/d; \
        echo one > /workspace/artifacts/d/one; ln -s /etc/passwd /workspace/artifacts/link";
    assert_eq!(house.exec(kept, &["sh", "-c", script]).stdout, "1");
    assert_eq!(
        std::fs::read_to_string(house.path("room/artifacts/d/one"))?,
        "one\n"
    );
    assert!(
        house
            .path("room/artifacts/link")
            .symlink_metadata()?
            .is_symlink()
    );
    assert_eq!(std::fs::read_to_string(house.path("room/inputs/n"))?, "1");
    std::fs::remove_dir_all(house.path("room/artifacts"))?;
    std::fs::create_dir(house.path("room/artifacts"))?;
    std::fs::remove_file(house.path("room/inputs/n"))?;
    let script = "find /workspace/artifacts /workspace/inputs -mindepth 1; \
        echo two > /workspace/artifacts/two";
    assert_eq!(house.exec(kept, &["sh", "-c", script]).stdout, "");
    let names: Vec<_> = std::fs::read_dir(house.path("room/artifacts"))?
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["two"]);
    house
        .docker
        .remove(&glovebox_backend::ContainerName::parse(
            &house.containers()[0],
        )?)?;
    Ok(())
}

fn time_is_up_and_it_stands_again(mut house: House) -> Outcome {
    let config_wall = house.profile.limits.wall_ms;
    let mut kept = house.keep(&house.name())?;
    assert_eq!(
        house
            .exec(kept.as_mut(), &["sh", "-c", "echo root > /var/tmp/kept"])
            .code(),
        0
    );
    house.profile.limits.wall_ms = Millis(1500);
    let since = Instant::now();
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; sleep 300' & sleep 300";
    let said = house.exec(kept.as_mut(), &["sh", "-c", script]);
    assert_eq!(said.ended().ending, Ending::TimedOut);
    assert!(
        since.elapsed() < Duration::from_secs(120),
        "{:?}",
        since.elapsed()
    );
    house.profile.limits.wall_ms = config_wall;
    assert_eq!(
        house.exec(kept.as_mut(), &["cat", "/var/tmp/kept"]).stdout,
        "root\n"
    );
    let script = "trap 'echo tidied; exit 3' TERM; echo ready; while :; do sleep 0.1; done";
    // An engine whose disk is busy may hand a signal over when its grace has passed already.
    let tidied = (0..3).any(|_| {
        let asked = Asked {
            act: Some(Box::new(|canceler| canceler.cancel())),
            ..Asked::default()
        };
        let said = house.exec_with(kept.as_mut(), &["sh", "-c", script], asked);
        assert_eq!(said.ended().ending, Ending::Canceled);
        said.stdout == "ready\ntidied\n"
    });
    assert!(tidied);
    assert!(kept.is_alive());
    drop(kept.close());
    Ok(())
}

fn ends_and_refusals(house: House) -> Outcome {
    let mut kept = house.keep(&house.name())?;
    let kept = kept.as_mut();
    for code in [0, 7, 126, 127] {
        assert_eq!(
            house
                .exec(kept, &["sh", "-c", &format!("exit {code}")])
                .code(),
            code
        );
    }
    let said = house.exec(kept, &["no-such-program"]);
    assert_eq!(said.error().code, Code::CommandNotFound);
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("", ""));
    assert_eq!(
        house.exec(kept, &["/etc/passwd"]).error().code,
        Code::CommandNotExecutable
    );
    assert_eq!(
        house.exec(kept, &["-x"]).error().code,
        Code::CommandNotFound
    );
    let asked = Asked {
        cwd: Some("/not/there"),
        ..Asked::default()
    };
    assert_eq!(
        house.exec_with(kept, &["true"], asked).error().code,
        Code::CwdNotFound
    );
    let asked = Asked {
        stdin: Some("abc".to_owned()),
        env: vec![("A", "b".to_owned())],
        ..Asked::default()
    };
    let said = house.exec_with(kept, &["sh", "-c", "cat; echo $A; id -u"], asked);
    assert_eq!(said.stdout, "abcb\n1000\n");
    // Taken away by hand.
    let name = house.containers().remove(0);
    let (at, removed) = (house.host.clone(), name.clone());
    let asked = Asked {
        act: Some(Box::new(move |_| {
            let mut command = std::process::Command::new("docker");
            command
                .args(["rm", "--force", &removed])
                .env("DOCKER_HOST", &at);
            assert!(command.output().expect("docker").status.success());
        })),
        ..Asked::default()
    };
    let said = house.exec_with(kept, &["sh", "-c", "echo ready; sleep 300"], asked);
    assert_eq!(said.error().code, Code::Lost, "{:?}", said.error());
    assert!(!kept.is_alive());
    Ok(())
}

#[test]
fn one_that_runs_out_of_memory_is_told() -> Outcome {
    on("runc", |mut house| {
        house.profile.limits.memory_bytes = Bytes::mib(128);
        let mut kept = house.keep(&house.name())?;
        let eat = "x = bytearray(1 << 30); print(len(x))";
        let said = house.exec(kept.as_mut(), &["python3", "-c", eat]);
        assert_eq!(said.ended().ending, Ending::LimitKilled);
        assert_eq!(said.ended().limit_hit, Some(LimitKind::Memory));
        assert_eq!(
            house.exec(kept.as_mut(), &["echo", "fine"]).stdout,
            "fine\n"
        );
        drop(kept.close());
        Ok(())
    })
}

#[test]
fn a_bomb_leaves_nothing() -> Outcome {
    on("runc", |mut house| {
        house.profile.limits.wall_ms = Millis(2000);
        let mut kept = house.keep(&house.name())?;
        let bomb = "bomb() { bomb | bomb & }; bomb; while :; do :; done";
        let said = house.exec(kept.as_mut(), &["bash", "-c", bomb]);
        assert!(said.ended().limit_hit.is_some(), "{:?}", said.ended());
        house.profile.limits.wall_ms = Millis::secs(30);
        let said = house.exec(kept.as_mut(), &["sh", "-c", "ls -d /proc/[0-9]* | wc -l"]);
        let count: u32 = said.stdout.trim().parse()?;
        assert!(count <= 5, "{count}");
        drop(kept.close());
        Ok(())
    })
}

#[test]
fn set_up_is_done_once() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let config = DockerConfig {
        read_only_root: false,
        tmpfs: Vec::new(),
        setup_command: Some("echo set >> /tmp/setup".to_owned()),
        ..DockerConfig::default()
    };
    let house = House::with(&host, "runc", config.clone());
    let name = house.name();
    let mut kept = house.keep(&name)?;
    assert_eq!(
        house.exec(kept.as_mut(), &["cat", "/tmp/setup"]).stdout,
        "set\n"
    );
    house.engine(&["stop", "--time=0", name.as_str()]);
    let mut kept = house.docker.adopt(&name, &house.profile)?.expect("there");
    assert_eq!(
        house.exec(kept.as_mut(), &["cat", "/tmp/setup"]).stdout,
        "set\n"
    );
    drop(kept.close());
    // One that fails leaves no container.
    let config = DockerConfig {
        setup_command: Some("echo why >&2; exit 3".to_owned()),
        ..config
    };
    let house = House::with(&host, "runc", config);
    let failed = house.keep(&house.name()).expect_err("refused");
    assert_eq!(failed.code, Code::SetupFailed);
    assert!(failed.to_string().contains("why"), "{failed}");
    assert!(house.is_empty());
    Ok(())
}
