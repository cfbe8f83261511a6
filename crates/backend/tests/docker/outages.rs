//! An engine that dies or hangs while a program runs. Each test has an engine of its own.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use glovebox_backend::Canceler;
use glovebox_model::{Code, Millis};

use crate::harness::{Asked, House, Outcome, OwnEngine, shared, tell};

#[test]
fn an_engine_that_dies_is_told_and_its_container_removed_later() -> Outcome {
    if shared().is_none() {
        return Ok(());
    }
    let engine = OwnEngine::start();
    let house = House::new(&engine.host, "runc");
    let name = house.name();
    let mut kept = house.keep(&name)?;
    let dir = engine.dir();
    let asked = Asked {
        act: Some(Box::new(move |_| tell(&dir, "kill"))),
        ..Asked::default()
    };
    let since = Instant::now();
    let said = house.run_with(&["sh", "-c", "echo ready; sleep 300"], asked);
    assert_eq!(
        said.error().code,
        Code::BackendUnavailable,
        "{:?}",
        said.error()
    );
    assert!(said.error().retry.allowed);
    assert!(
        since.elapsed() < Duration::from_secs(60),
        "{:?}",
        since.elapsed()
    );
    assert!(!kept.is_alive());
    let refused = house.run(&["true"]);
    assert_eq!(refused.error().code, Code::BackendUnavailable);
    engine.tell("restart");
    // The next one takes the orphan away.
    assert_eq!(house.run(&["echo", "back"]).stdout, "back\n");
    assert_eq!(house.containers(), [name.as_str()]);
    let mut kept = house.docker.adopt(&name, &house.profile)?.expect("there");
    assert_eq!(
        house.exec(kept.as_mut(), &["echo", "kept"]).stdout,
        "kept\n"
    );
    drop(kept.close());
    drop(house);
    Ok(())
}

#[test]
fn an_engine_that_hangs_is_given_up() -> Outcome {
    if shared().is_none() {
        return Ok(());
    }
    let engine = OwnEngine::start();
    let mut house = House::new(&engine.host, "runc");
    let paused = Rc::new(Cell::new(false));
    // One that could not even begin in its time gets more.
    let (said, took) = [1500, 15_000]
        .into_iter()
        .map(|wall_ms| {
            house.profile.limits.wall_ms = Millis(wall_ms);
            let (dir, paused) = (engine.dir(), Rc::clone(&paused));
            let act = move |_: &Canceler| {
                tell(&dir, "pause");
                paused.set(true);
            };
            let asked = Asked {
                act: Some(Box::new(act)),
                ..Asked::default()
            };
            let since = Instant::now();
            let said = house.run_with(&["sh", "-c", "trap '' TERM; echo ready; sleep 300"], asked);
            (said, since.elapsed())
        })
        .find(|_| paused.get())
        .expect("it never began");
    engine.tell("resume");
    assert_eq!(
        said.error().code,
        Code::BackendUnavailable,
        "{:?}",
        said.error()
    );
    assert!(took < Duration::from_secs(100), "{took:?}");
    house.profile.limits.wall_ms = Millis::secs(30);
    assert_eq!(house.run(&["echo", "back"]).stdout, "back\n");
    assert!(house.is_empty());
    drop(house);
    Ok(())
}
