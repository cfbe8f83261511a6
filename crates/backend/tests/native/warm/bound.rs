//! A warm sandbox that is given to an exec.

use glovebox_backend::{Cancel, Ending, ExecDirs, Place, Run, Sandbox, Warm};
use glovebox_model::{Access, Code, Profile};
use rustix::process::{Pid, Signal, kill_process};

use crate::house::{Both, Rooms, Yard, order, profile, run, shell, soon, unbound};

pub(crate) fn warm(yard: &Yard, profile: &Profile) -> Warm {
    let spec = unbound(profile);
    let mut warm = yard
        .native()
        .warm(&spec, &yard.house.state(), None)
        .unwrap();
    warm.settle(soon()).unwrap();
    assert!(warm.is_alive());
    warm
}

pub(crate) fn an_exec_sees_its_directories_and_may_write_only_where_it_should() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    std::fs::write(rooms.path("work").join("here"), "work\n").unwrap();
    std::fs::write(rooms.path("inputs").join("given"), "input\n").unwrap();
    let bound = warm(&yard, &profile).bind(&rooms.room()).unwrap();
    let line = "pwd; cat here ../inputs/given; echo made > ../artifacts/out; echo more > new
        echo no > ../inputs/x; echo no > ../y; mkdir ../z; id -u; stat -c %u here";
    let told = run(bound, &profile, &shell(line), None).unwrap();
    assert_eq!(told.stdout, "/workspace/work\nwork\ninput\n1000\n1000\n");
    assert_eq!(told.stderr.lines().count(), 3, "{}", told.stderr);
    assert_eq!(
        told.stderr.matches("Read-only file system").count(),
        3,
        "{}",
        told.stderr
    );
    let read = |name: &str, file: &str| std::fs::read_to_string(rooms.path(name).join(file));
    assert_eq!(read("artifacts", "out").unwrap(), "made\n");
    assert_eq!(read("work", "new").unwrap(), "more\n");
    // Whoever owned the directory owns what was made in it.
    let made = rustix::fs::stat(rooms.path("work").join("new")).unwrap();
    assert_eq!((made.st_uid, made.st_gid), (0, 0));
    assert!(read("inputs", "x").is_err());
}

pub(crate) fn what_one_exec_left_is_in_no_other_sandbox() {
    const CANARY: &str = "canary-4c1f";
    let yard = Yard::new();
    let profile = profile();
    let mut waiting: Vec<Warm> = (0..3).map(|_| warm(&yard, &profile)).collect();
    let line = format!(
        "for place in /tmp /var/tmp /dev/shm /home/sandbox . ../artifacts; do
             echo {CANARY} > $place/{CANARY} || exit 1
         done; ipcmk -Q > /dev/null"
    );
    let first = Rooms::new(&yard.house, "first");
    let bound = waiting.remove(0).bind(&first.room()).unwrap();
    let told = run(bound, &profile, &shell(&line), None).unwrap();
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    // Of those that stood by then, and of one that is made later.
    waiting.push(warm(&yard, &profile));
    let look = format!(
        "find / -name '*{CANARY}*' 2> /dev/null; grep -rl {CANARY} /tmp /var /home /dev/shm \
         /workspace 2> /dev/null; ls -A /workspace/work; ls -A /workspace/artifacts; ipcs -q | grep 0x"
    );
    for (index, warm) in waiting.into_iter().enumerate() {
        let rooms = Rooms::new(&yard.house, &format!("other-{index}"));
        let bound = warm.bind(&rooms.room()).unwrap();
        let told = run(bound, &profile, &shell(&look), None).unwrap();
        assert_eq!((told.stdout.as_str(), told.stderr.as_str()), ("", ""));
    }
}

pub(crate) fn one_that_died_is_noticed_before_it_is_given_away() {
    let yard = Yard::new();
    let profile = profile();
    // Its keeper, and its pid 1.
    for index in [0, 1] {
        let mut warm = warm(&yard, &profile);
        let pids = warm.pids();
        assert_eq!(pids.len(), 2, "{pids:?}");
        kill_process(Pid::from_raw(pids[index]).unwrap(), Signal::KILL).unwrap();
        let deadline = soon();
        while warm.is_alive() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        // And should somebody not have looked, nothing runs.
        let rooms = Rooms::new(&yard.house, &format!("dead-{index}"));
        let order = shell("echo ran > ../artifacts/ran");
        let told = warm
            .bind(&rooms.room())
            .and_then(|bound| run(bound, &profile, &order, None));
        let error = told.unwrap_err();
        assert!(
            matches!(error.code, Code::Internal | Code::SetupFailed),
            "{error:?}"
        );
        assert!(!rooms.path("artifacts").join("ran").exists());
    }
}

/// Pid 1 and everybody inside have no power over what the keeper will mount upon.
pub(crate) fn its_places_cannot_be_exchanged_from_inside() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let bound = warm(&yard, &profile).bind(&rooms.room()).unwrap();
    let line = "cd /
        mv /workspace /tmp/w; mv /workspace/artifacts /workspace/b; rmdir /workspace/artifacts
        ln -s /tmp /workspace/link; rm -rf /workspace/artifacts; umount /workspace/artifacts
        mount -t tmpfs x /workspace; mkdir /tmp/x; mount --bind /tmp/x /workspace/artifacts
        echo still > /workspace/artifacts/still";
    let told = run(bound, &profile, &shell(line), None).unwrap();
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
    assert_eq!(
        std::fs::read_to_string(rooms.path("artifacts").join("still")).unwrap(),
        "still\n"
    );
}

pub(crate) fn an_exec_and_a_sandbox_that_disagree_are_refused() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let without = ExecDirs {
        work: None,
        ..rooms.room()
    };
    let refused = warm(&yard, &profile).bind(&without).unwrap_err();
    assert_eq!(refused.code, Code::Internal);
    let mut spec = unbound(&profile);
    spec.work = Place::Empty;
    spec.inputs = Place::Later(Access::Ro);
    let mut other = yard
        .native()
        .warm(&spec, &yard.house.state(), None)
        .unwrap();
    other.settle(soon()).unwrap();
    assert_eq!(other.bind(&rooms.room()).unwrap_err().code, Code::Internal);
    // A place for inputs may stay empty, and a work place of its own is scratch.
    let mut scratch = yard
        .native()
        .warm(&spec, &yard.house.state(), None)
        .unwrap();
    scratch.settle(soon()).unwrap();
    let room = ExecDirs {
        inputs: None,
        ..without
    };
    let order =
        shell("echo x > y; cat y; ls -A ../inputs; echo z > ../inputs/z 2> /dev/null || echo ro");
    let told = run(scratch.bind(&room).unwrap(), &profile, &order, None).unwrap();
    assert_eq!(told.stdout, "x\nro\n");
}

pub(crate) fn a_command_or_a_directory_that_is_missing_is_told() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let bound = warm(&yard, &profile).bind(&rooms.room()).unwrap();
    let missing = order(&["no-such-command"], &[]);
    let error = run(bound, &profile, &missing, None).unwrap_err();
    assert_eq!(error.code, Code::CommandNotFound);
    let bound = warm(&yard, &profile).bind(&rooms.room()).unwrap();
    let mut nowhere = shell("echo ran");
    nowhere.cwd = crate::house::text("/workspace/work/nowhere");
    let error = run(bound, &profile, &nowhere, None).unwrap_err();
    assert_eq!(error.code, Code::CwdNotFound);
}

pub(crate) fn canceled_it_ends() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let bound = warm(&yard, &profile).bind(&rooms.room()).unwrap();
    let (cancel, canceler) = Cancel::new().unwrap();
    let mut both = Both::canceling(canceler);
    let (ended, remains) = Box::new(bound).run(Run {
        order: &shell("echo up; exec sleep 600"),
        profile: &profile,
        watched: &[],
        stdin: None,
        terminal: None,
        secrets: &[],
        sink: &mut both,
        cancel: &cancel,
        control: None,
    });
    drop(remains);
    assert_eq!(ended.unwrap().ending, Ending::Canceled);
}

pub(crate) fn one_that_is_not_needed_leaves_nothing() {
    let yard = Yard::new();
    let profile = profile();
    let pids = {
        let warm = warm(&yard, &profile);
        let pids = warm.pids();
        drop(warm.dismiss());
        pids
    };
    for pid in pids {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // For a moment longer the kernel may show one that has ended.
        let is_over = [") Z ", ") X "].iter().any(|it| stat.contains(it));
        assert!(!stat.contains("(glovebox-") || is_over, "{stat}");
    }
    // Also when nobody waited for it to stand, and when it is just dropped.
    let spec = unbound(&profile);
    drop(yard.native().warm(&spec, &yard.house.state(), None));
}
