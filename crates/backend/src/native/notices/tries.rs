//! Who tried to become another program, until it is known what came of it.
//!
//! A call is seen before it is done, and a shell that looks for a command tries several places. So a
//! try is kept until its process makes another call that is observed, its end included: by then it is
//! the new program, which is told, or still the old one, and nothing happened. Whoever does neither for
//! a while is looked at; whoever was killed before that had no chance to report a failure, so there was
//! none. Whoever was found unchanged again and again has failed, however it ends.

use std::time::{Duration, Instant};

use glovebox_model::ByteString;

use super::image::{Image, Seen};
use super::who::Who;
use crate::notice::{Notice, Noticed};
use crate::spec::Order;

/// At once: each is settled in a millisecond or two.
const TRIES_MAX: usize = 1024;
/// So many are looked at whenever anybody calls.
const AT_ONCE: usize = 16;
/// From one look to the next: more seldom each time.
const SOONEST: Duration = Duration::from_millis(1);
const LATEST: Duration = Duration::from_millis(250);
/// Starting a program takes a millisecond, on a busy host a few. Who waits for its next look as long as
/// this was unchanged at all before.
const OVERDUE: Duration = Duration::from_millis(32);

#[derive(Debug)]
pub(super) struct Try {
    thread: i32,
    who: Who,
    /// None when it could not be looked into.
    before: Option<Image>,
    /// None when the call could not be read.
    exec: Option<Noticed>,
    look_at: Instant,
    pause: Duration,
}

impl Try {
    /// While the call still waits.
    pub(super) fn new(thread: i32, who: Who, exec: Option<Noticed>) -> Self {
        let before = match Seen::of(who.process) {
            Seen::Image(image) => Some(image),
            Seen::Between | Seen::Hidden | Seen::NeverExecuted | Seen::Gone => None,
        };
        Self {
            thread,
            who,
            before,
            exec,
            look_at: Instant::now() + SOONEST,
            pause: SOONEST,
        }
    }
}

/// What came of a try.
enum Outcome {
    Became(Option<Image>),
    /// It is the same program as before.
    Same,
    /// It never became any.
    Never,
}

pub(super) struct Tries<'run> {
    /// The first program's, which is not always readable.
    order: &'run Order,
    open: Vec<Try>,
}

impl<'run> Tries<'run> {
    pub(super) fn new(order: &'run Order) -> Self {
        let open = Vec::new();
        Self { order, open }
    }

    /// False when there are too many.
    pub(super) fn add(&mut self, next: Try) -> bool {
        let has_room = self.open.len() < TRIES_MAX;
        if has_room {
            self.open.push(next);
        }
        has_room
    }

    pub(super) fn next_look(&self) -> Option<Instant> {
        self.open.iter().map(|it| it.look_at).min()
    }

    /// This thread makes another call, so its own last one is over; and so is that of whoever made it.
    /// A thread that became another program has its process's number since.
    pub(super) fn settle(&mut self, thread: i32) -> Vec<Notice> {
        let concerns = |it: &Try| it.thread == thread || it.who.process == thread;
        // Nobody is told of before those that it descends from, unless there are too many to see to.
        let all = self.open.len() <= AT_ONCE;
        if !all && !self.open.iter().any(concerns) {
            return Vec::new();
        }
        self.sift(|it| match all || concerns(it) {
            false => Verdict::Keep,
            true => match it.outcome() {
                Outcome::Same if it.thread == thread => Verdict::Drop,
                outcome => outcome.into(),
            },
        })
    }

    pub(super) fn look(&mut self, now: Instant) -> Vec<Notice> {
        if self.next_look().is_none_or(|next| next > now) {
            return Vec::new();
        }
        self.sift(|it| {
            if it.look_at > now {
                return Verdict::Keep;
            }
            it.pause = (it.pause * 2).min(LATEST);
            it.look_at = now + it.pause;
            it.outcome().into()
        })
    }

    /// Nobody is left to be looked at.
    pub(super) fn finish(&mut self) -> Vec<Notice> {
        self.sift(|it| it.unseen().into())
    }

    fn sift(&mut self, mut judge: impl FnMut(&mut Try) -> Verdict) -> Vec<Notice> {
        let mut became: Vec<(Try, Option<Image>)> = Vec::new();
        for mut it in std::mem::take(&mut self.open) {
            match judge(&mut it) {
                Verdict::Keep => self.open.push(it),
                Verdict::Drop => {}
                Verdict::Tell(image) => became.push((it, image)),
            }
        }
        let mut told = Vec::new();
        while let Some((it, image)) = became.pop() {
            // Threads of one process may all have tried; one of them did it, and the others are gone.
            let process = it.who.process;
            let rivals = became.extract_if(.., |other| other.0.who.process == process);
            let it = rivals.map(|(rival, _)| rival).fold(it, |it, rival| {
                let name = image.as_ref().and_then(|it| it.name(process));
                if rival.is_named(name) { rival } else { it }
            });
            self.open.retain(|other| other.who.process != process);
            told.extend(self.notice(it, image));
        }
        told.reverse();
        told
    }

    fn notice(&self, it: Try, image: Option<Image>) -> Option<Notice> {
        let Try { who, exec, .. } = it;
        let exec = match exec {
            Some(exec) => exec,
            None => self.first(who.process, image)?,
        };
        Some(who.notice(exec))
    }

    /// What the kernel says now of a program whose start could not be read: the order's.
    fn first(&self, process: i32, image: Option<Image>) -> Option<Noticed> {
        let command = self.order.argv.first()?;
        let name = image
            .and_then(|it| it.name(process))
            .and_then(ByteString::new);
        let program = name.unwrap_or_else(|| command.clone());
        let mut argv = self.order.argv.clone();
        if !program.as_bytes().ends_with(command.as_bytes()) {
            // A script without a first line is given to the shell.
            argv[0] = ByteString::new(&b"sh"[..])?;
            argv.insert(1, command.clone());
        }
        let kept = super::read::shorten(argv);
        Some(Noticed::Exec {
            program,
            argv: kept.0,
            argv_truncated: kept.1,
            cwd: Some(self.order.cwd.clone()),
        })
    }
}

impl Try {
    fn is_named(&self, name: Option<Vec<u8>>) -> bool {
        match (&self.exec, name) {
            (Some(Noticed::Exec { program, .. }), Some(name)) => {
                program.as_bytes().ends_with(&name)
            }
            _ => false,
        }
    }

    fn outcome(&self) -> Outcome {
        match (Seen::of(self.who.process), &self.before) {
            (Seen::Image(now), Some(before)) if now == *before => Outcome::Same,
            (Seen::Image(now), _) => Outcome::Became(Some(now)),
            (Seen::Between | Seen::Hidden, _) => Outcome::Same,
            (Seen::NeverExecuted, _) => Outcome::Never,
            (Seen::Gone, _) => self.unseen(),
        }
    }

    /// It is gone, and nobody saw it change.
    fn unseen(&self) -> Outcome {
        match self.pause < OVERDUE {
            true => Outcome::Became(None),
            false => Outcome::Never,
        }
    }
}

enum Verdict {
    Keep,
    Drop,
    Tell(Option<Image>),
}

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Became(image) => Self::Tell(image),
            Outcome::Same => Self::Keep,
            Outcome::Never => Self::Drop,
        }
    }
}
