//! A process with many sandboxes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use glovebox_backend::{Ending, Ground, Native};
use glovebox_cage::{Spawner, cgroup};
use glovebox_model::Code;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use crate::house::{Heard, House, OPEN_FILES};

const MANY: usize = 100;
const PATIENCE: Duration = Duration::from_secs(120);

fn name(index: usize) -> String {
    format!("glovebox-crowd-{}-{index}", std::process::id())
}

fn groups() -> Vec<PathBuf> {
    let parents = cgroup::Host::detect().map(|host| host.parents());
    parents.unwrap_or_default()
}

fn children(pid: i32) -> usize {
    let file = format!("/proc/{pid}/task/{pid}/children");
    std::fs::read_to_string(file)
        .unwrap()
        .split_whitespace()
        .count()
}

/// A dozen descriptors for each; what a server does when it starts.
fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
}

pub(crate) fn a_hundred_run_at_once_and_leave_nothing() {
    open_many_files();
    let spawner = Spawner::fork().unwrap();
    let (house, ground) = (House::new(), Ground::look());
    let up = AtomicUsize::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let mut doors = Vec::new();
        let mut threads = Vec::new();
        for index in 0..MANY {
            let (stdin, door) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
            doors.push(door);
            let (house, ground, spawner, up) = (&house, &ground, &spawner, &up);
            threads.push(scope.spawn(move || {
                let mut native = Native::spawn(ground, spawner).unwrap();
                native.reserve(&name(index)).unwrap();
                let mut heard = Heard {
                    text: String::new(),
                    at_line: &|| {
                        up.fetch_add(1, Ordering::SeqCst);
                    },
                };
                // Stays until its input ends, so until all of them are there.
                let line = format!("ulimit -n; cat > /dev/null; exit {index}");
                let ended = house.run(native, &line, stdin, &mut heard).unwrap();
                (ended, heard.text)
            }));
        }
        while up.load(Ordering::SeqCst) < MANY {
            assert!(started.elapsed() < PATIENCE, "{up:?} of {MANY} are up");
            assert!(!threads.iter().any(|it| it.is_finished()), "one has failed");
            std::thread::sleep(Duration::from_millis(5));
        }
        println!("all up after {:?}", started.elapsed());
        let opened = Instant::now();
        drop(doors);
        for (index, thread) in threads.into_iter().enumerate() {
            let (ended, text) = thread.join().unwrap();
            let code = i32::try_from(index).unwrap();
            assert_eq!(ended.ending, Ending::Exited { code });
            assert_eq!(text, format!("{OPEN_FILES}\n"));
        }
        println!("all gone after {:?}", opened.elapsed());
    });
    for parent in groups() {
        let left = (0..MANY).find(|index| parent.join(name(*index)).exists());
        assert_eq!(left, None, "in {}", parent.display());
    }
    let deadline = Instant::now() + PATIENCE;
    while children(spawner.pid()) > 16 {
        assert!(Instant::now() < deadline, "keepers are left");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn a_name_that_is_taken_is_refused_and_left_alone() {
    let spawner = Spawner::fork().unwrap();
    let ground = Ground::look();
    let mut first = Native::spawn(&ground, &spawner).unwrap();
    first.reserve(&name(0)).unwrap();
    let made: Vec<PathBuf> = ground
        .group_parents()
        .iter()
        .map(|it| it.join(name(0)))
        .collect();
    assert!(made.iter().all(|it| it.is_dir()));
    let mut second = Native::spawn(&ground, &spawner).unwrap();
    match second.reserve(&name(0)) {
        // Where no group can be made there is nothing to take.
        Ok(()) => assert!(made.is_empty()),
        Err(error) => assert_eq!(error.code, Code::SetupFailed),
    }
    drop(second);
    assert!(made.iter().all(|it| it.is_dir()));
    drop(first);
    assert!(made.iter().all(|it| !it.exists()));
}

pub(crate) fn without_its_spawner_nothing_more_is_started() {
    let spawner = Spawner::fork().unwrap();
    let (house, ground) = (House::new(), Ground::look());
    let mut native = Native::spawn(&ground, &spawner).unwrap();
    native.reserve(&name(0)).unwrap();
    let (stdin, door) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let (up, is_up) = mpsc::channel();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut heard = Heard {
                text: String::new(),
                at_line: &|| up.send(()).unwrap(),
            };
            house.run(native, "echo up; cat; exit 8", stdin, &mut heard)
        });
        is_up.recv_timeout(PATIENCE).unwrap();
        kill_process(Pid::from_raw(spawner.pid()).unwrap(), Signal::KILL).unwrap();
        // A kill takes a moment; from then on it is an error.
        let deadline = Instant::now() + PATIENCE;
        let error = loop {
            match Native::spawn(&ground, &spawner) {
                Err(error) => break error,
                Ok(_) => assert!(Instant::now() < deadline),
            }
        };
        assert_eq!(error.code, Code::BackendUnavailable);
        assert!(error.causes.iter().any(|it| it.contains("is gone")));
        drop(door);
        let ended = running.join().unwrap().unwrap();
        assert_eq!(ended.ending, Ending::Exited { code: 8 });
    });
    assert!(groups().iter().all(|it| !it.join(name(0)).exists()));
}
