//! One exec in a container of its own.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use glovebox_backend::Ending;
use glovebox_model::{Bytes, Code, Count, DockerConfig, Guarantee, LimitKind, Millis};

use crate::harness::{Asked, House, Outcome, patient, shared};

/// The same with the kernel of the host and with one of the sandbox's own.
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
    ends_as_the_program_does;
    a_refusal_is_not_the_programs_end;
    the_sandbox_is_closed;
    files_come_and_go;
    input_and_environment;
    time_is_up;
    canceled;
    memory_is_limited;
    a_writer_is_stopped;
}

fn on(runtime: &str, test: fn(House) -> Outcome) -> Outcome {
    match shared() {
        Some(host) => test(House::new(&host, runtime)),
        None => Ok(()),
    }
}

fn ends_as_the_program_does(house: House) -> Outcome {
    let said = house.run(&["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(said.code(), 7);
    assert_eq!(
        (said.stdout.as_str(), said.stderr.as_str()),
        ("out\n", "err\n")
    );
    // An engine's own codes are the program's when the program says so.
    for code in [0, 1, 125, 126, 127, 137, 255] {
        let said = house.run(&["sh", "-c", &format!("exit {code}")]);
        assert_eq!(said.code(), code);
    }
    let said = house.run(&["sh", "-c", "echo 'Error: mine' >&2; exit 1"]);
    assert_eq!(said.stderr, "Error: mine\n");
    assert!(house.is_empty());
    Ok(())
}

fn a_refusal_is_not_the_programs_end(house: House) -> Outcome {
    let said = house.run(&["no-such-program"]);
    assert_eq!(
        said.error().code,
        Code::CommandNotFound,
        "{:?}",
        said.error()
    );
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("", ""));
    let said = house.run(&["/etc/passwd"]);
    assert_eq!(
        said.error().code,
        Code::CommandNotExecutable,
        "{:?}",
        said.error()
    );
    let asked = Asked {
        cwd: Some("/workspace/work/not-there"),
        ..Asked::default()
    };
    let said = house.run_with(&["true"], asked);
    assert_eq!(said.error().code, Code::CwdNotFound);
    assert!(!house.path("work/not-there").exists());
    Ok(())
}

const CLOSED: &str = r#"
id -u
grep -E '^(CapEff|CapBnd|CapPrm):' /proc/self/status | awk '{print $2}' | sort -u
touch /outside 2>/dev/null && echo wrote-root
touch /etc/x 2>/dev/null && echo wrote-etc
touch /workspace/inputs/x 2>/dev/null && echo wrote-inputs
awk -F: 'NR>2 {gsub(/ /,"",$1); if ($1 != "lo") print "interface " $1}' /proc/net/dev
(exec 3<>/dev/tcp/127.0.0.1/1) 2>/dev/null && echo connected
cp /bin/true /tmp/true && /tmp/true 2>/dev/null && echo ran-from-tmp
hostname
ulimit -n
ls /var/run/docker.sock 2>/dev/null
[ -e /dev/sda ] || [ -e /dev/vda ] && echo disk
exit 0
"#;

fn the_sandbox_is_closed(house: House) -> Outcome {
    let said = house.run(&["bash", "-c", CLOSED]);
    let gvisor = house.profile.runtime.as_deref() == Some("runsc");
    let mut lines: Vec<&str> = said.stdout.lines().collect();
    if gvisor {
        // Old versions do not keep `noexec`.
        lines.retain(|line| *line != "ran-from-tmp");
    }
    assert_eq!(
        lines,
        ["1000", "0000000000000000", "sandbox", "256"],
        "{}",
        said.stderr
    );
    assert_eq!(said.code(), 0);
    Ok(())
}

fn files_come_and_go(house: House) -> Outcome {
    std::fs::write(house.path("inputs/question"), "6 7\n")?;
    std::fs::write(house.path("work/base"), "kept\n")?;
    let script = "read a b < /workspace/inputs/question; cat base; \
        echo $((a*b)) > /workspace/artifacts/answer; echo new > made; \
        echo x > /home/sandbox/x && echo y > /tmp/y && echo z > /dev/shm/z && echo all";
    let said = house.run(&["sh", "-c", script]);
    assert_eq!(said.stdout, "kept\nall\n", "{}", said.stderr);
    assert_eq!(
        std::fs::read_to_string(house.path("artifacts/answer"))?,
        "42\n"
    );
    assert_eq!(std::fs::read_to_string(house.path("work/made"))?, "new\n");
    // The next one finds the workspace and nothing else.
    let said = house.run(&[
        "sh",
        "-c",
        "cat made; cat /home/sandbox/x /tmp/y 2>/dev/null; true",
    ]);
    assert_eq!(said.stdout, "new\n");
    Ok(())
}

fn input_and_environment(house: House) -> Outcome {
    let secret = "s3cret with 'quotes' and = signs";
    let asked = Asked {
        stdin: Some("line one\nline two".repeat(20_000)),
        env: vec![
            ("PLAIN", secret.to_owned()),
            ("LINES", "one\ntwo".to_owned()),
            ("DOCKER_HOST", "tcp://198.51.100.1:1".to_owned()),
        ],
        ..Asked::default()
    };
    let script = "printf '%s|%s|%s|' \"$PLAIN\" \"$LINES\" \"$DOCKER_HOST\"; wc -c";
    let said = house.run_with(&["sh", "-c", script], asked);
    let expected = format!("{secret}|one\ntwo|tcp://198.51.100.1:1|{}\n", 17 * 20_000);
    assert_eq!(said.stdout, expected, "{}", said.stderr);
    // Without input there is none to wait for.
    assert_eq!(house.run(&["wc", "-c"]).stdout, "0\n");
    Ok(())
}

fn time_is_up(mut house: House) -> Outcome {
    house.profile.limits.wall_ms = Millis(1500);
    let since = Instant::now();
    // Deaf to TERM, with a child that is too.
    let said = house.run(&[
        "sh",
        "-c",
        "trap '' TERM; sh -c 'trap \"\" TERM; sleep 300' & sleep 300",
    ]);
    assert_eq!(said.ended().ending, Ending::TimedOut);
    assert_eq!(said.ended().limit_hit, Some(LimitKind::Wall));
    assert!(
        since.elapsed() < Duration::from_secs(120),
        "{:?}",
        since.elapsed()
    );
    assert!(house.is_empty());
    Ok(())
}

fn canceled(house: House) -> Outcome {
    let script = "trap 'echo tidied; exit 3' TERM; echo ready; while :; do sleep 0.1; done";
    // An engine whose disk is busy may hand a signal over when its grace has passed already.
    let tidied = (0..3).any(|_| {
        let said = patient(|| {
            let asked = Asked {
                act: Some(Box::new(|canceler| canceler.cancel())),
                ..Asked::default()
            };
            house.run_with(&["sh", "-c", script], asked)
        });
        assert_eq!(said.ended().ending, Ending::Canceled);
        said.stdout == "ready\ntidied\n"
    });
    assert!(tidied);
    // Twice is at once.
    let since = Instant::now();
    let said = patient(|| {
        let asked = Asked {
            act: Some(Box::new(|canceler| {
                canceler.cancel();
                canceler.cancel();
            })),
            ..Asked::default()
        };
        house.run_with(&["sh", "-c", "trap '' TERM; echo ready; sleep 300"], asked)
    });
    assert_eq!(said.ended().ending, Ending::Canceled);
    assert!(since.elapsed() < Duration::from_secs(100));
    assert!(house.is_empty());
    Ok(())
}

fn memory_is_limited(mut house: House) -> Outcome {
    house.profile.limits.memory_bytes = Bytes::mib(128);
    let said = house.run(&["python3", "-c", "x = bytearray(1 << 30); print(len(x))"]);
    let ended = said.ended();
    assert_eq!(
        ended.limit_hit,
        Some(LimitKind::Memory),
        "{ended:?} {}",
        said.stderr
    );
    assert!(!said.stdout.contains("1073741824"));
    Ok(())
}

fn a_writer_is_stopped(mut house: House) -> Outcome {
    house.profile.limits.disk_bytes = Bytes::mib(16);
    // It stays: whoever looks may be late.
    let script = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); head -c 4M /dev/zero > f$i || exit 9; sleep 0.05; done; sleep 300";
    let said = house.run(&["sh", "-c", script]);
    assert_eq!(said.ended().ending, Ending::LimitKilled, "{}", said.stderr);
    assert_eq!(said.ended().limit_hit, Some(LimitKind::Disk));
    // Memory files end in «no space left».
    let said = house.run(&["sh", "-c", "head -c 200M /dev/zero > /tmp/big; echo $?"]);
    assert_ne!(said.stdout, "0\n");
    Ok(())
}

#[test]
fn processes_are_limited() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let mut house = House::new(&host, "runc");
    house.profile.limits.pids = Count(20);
    // It stays for a moment: what happened to a container that is gone nobody can look up.
    let script = "import os, sys, time
try:
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
except OSError as error:
    print('fork:', error, file=sys.stderr)
time.sleep(4)";
    let said = house.run(&["python3", "-c", script]);
    assert_eq!(
        said.ended().limit_hit,
        Some(LimitKind::Pids),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("fork"), "{}", said.stderr);
    Ok(())
}

#[test]
fn processor_time_is_limited() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let mut house = House::new(&host, "runc");
    house.profile.limits.cpu_ms = Millis(500);
    let said = house.run(&["sh", "-c", "while :; do :; done"]);
    assert_eq!(said.ended().ending, Ending::LimitKilled);
    assert_eq!(said.ended().limit_hit, Some(LimitKind::Cpu));
    assert!(said.ended().usage.cpu_ms >= 500);
    Ok(())
}

#[test]
fn the_kernel_inside_is_the_sandboxes_own() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let mut house = House::new(&host, "runsc");
    house.profile.require.insert(Guarantee::OwnKernel);
    let inside = house.run(&["uname", "-r"]).stdout;
    let outside = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    assert_ne!(inside, outside);
    // The host's kernel is not one's own, and that is refused before anything runs.
    house.profile.runtime = Some("runc".to_owned());
    assert_eq!(house.run(&["true"]).error().code, Code::BackendUnavailable);
    Ok(())
}

#[test]
fn an_image_with_an_entry_point_runs_our_command() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let mut house = House::new(&host, "runc");
    let tag = format!("glovebox-test-entry:{}", house.label);
    let made = house.engine(&[
        "create",
        "--entrypoint=/bin/echo",
        crate::harness::IMAGE,
        "hello",
    ]);
    let id = made.trim();
    let change = "--change=ENTRYPOINT [\"/bin/echo\", \"image:\"]";
    house.engine(&["commit", change, "--change=CMD [\"default\"]", id, &tag]);
    house.engine(&["rm", id]);
    house.profile.image = Some(tag.clone());
    let said = house.run(&["sh", "-c", "echo ours"]);
    let name = house.name();
    let mut kept = house.keep(&name)?;
    let again = house.exec(kept.as_mut(), &["sh", "-c", "echo kept"]);
    drop(kept.close());
    house.engine(&["rmi", &tag]);
    assert_eq!(
        (said.stdout.as_str(), again.stdout.as_str()),
        ("ours\n", "kept\n")
    );
    Ok(())
}

#[test]
fn what_the_workspaces_owner_makes_is_the_owners() -> Outcome {
    use std::os::unix::fs::{MetadataExt, chown};
    let Some(host) = shared() else { return Ok(()) };
    let house = House::new(&host, "runc");
    chown(house.path("work"), Some(4321), Some(4321))?;
    let said = house.run(&["sh", "-c", "id -u; touch made /workspace/artifacts/made"]);
    assert_eq!(said.stdout, "4321\n", "{}", said.stderr);
    for made in ["work/made", "artifacts/made"] {
        assert_eq!(house.path(made).metadata()?.uid(), 4321, "{made}");
    }
    Ok(())
}

#[test]
fn removed_from_outside() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let house = House::new(&host, "runc");
    let (at, label) = (house.host.clone(), house.label.clone());
    let asked = Asked {
        act: Some(Box::new(move |_| {
            let name = format!("glovebox-test-{label}-1");
            let mut command = std::process::Command::new("docker");
            command
                .args(["rm", "--force", &name])
                .env("DOCKER_HOST", &at);
            assert!(command.output().expect("docker").status.success());
        })),
        ..Asked::default()
    };
    let said = house.run_with(&["sh", "-c", "echo ready; sleep 300"], asked);
    assert_eq!(said.error().code, Code::Lost, "{:?}", said.error());
    Ok(())
}

#[test]
fn a_paused_container_is_ended_too() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let mut house = House::new(&host, "runc");
    // On a busy disk it may be over before it is paused; it has more time then.
    let mut attempts = [2500, 10_000, 10_000].into_iter().zip(1..);
    let ended = attempts.any(|(wall_ms, attempt)| {
        house.profile.limits.wall_ms = Millis(wall_ms);
        let name = format!("glovebox-test-{}-{attempt}", house.label);
        let paused = Rc::new(Cell::new(false));
        let (at, done) = (house.host.clone(), Rc::clone(&paused));
        let asked = Asked {
            act: Some(Box::new(move |_| {
                let mut command = std::process::Command::new("docker");
                command.args(["pause", &name]).env("DOCKER_HOST", &at);
                done.set(command.output().expect("docker").status.success());
            })),
            ..Asked::default()
        };
        let said = house.run_with(&["sh", "-c", "echo ready; sleep 300"], asked);
        if !paused.get() || said.may_be_asked_again() {
            return false;
        }
        assert_eq!(said.ended().ending, Ending::TimedOut);
        true
    });
    assert!(ended);
    assert!(house.is_empty());
    Ok(())
}

#[test]
fn binds_of_the_operators() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let data = tempfile::tempdir()?;
    std::fs::write(data.path().join("fact"), "true\n")?;
    let config = DockerConfig {
        bind_roots: vec![data.path().display().to_string()],
        binds: vec![format!("{}:/data", data.path().display())],
        ..DockerConfig::default()
    };
    let house = House::with(&host, "runc", config);
    let said = house.run(&["sh", "-c", "cat /data/fact; echo no > /data/fact"]);
    assert_eq!(said.stdout, "true\n");
    assert_ne!(said.code(), 0);
    Ok(())
}
