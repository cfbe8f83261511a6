//! One step of the plan, done. Every function here runs in pid 1 before the payload exists.

mod cupboard;
mod effects;
mod files;
mod layer;
mod mounts;
mod privileges;
mod rules;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::sys::Result;

pub(crate) use cupboard::Cupboard;

use crate::init::Furnished;
use crate::plan::{HOSTNAME, Namespace, Opener, Plan, Step};
use crate::seccomp::{self, Arch};
use crate::sys;
use crate::way_out::WayOut;

pub(crate) use mounts::{attribute_bits, copy_of, open_source};

/// What the steps share: the root under construction and the trees that go into it.
pub(crate) struct Workbench<'plan> {
    plan: &'plan Plan,
    /// One per mount of the plan, in its order, opened before anything is covered.
    sources: VecDeque<OwnedFd>,
    root: Option<OwnedFd>,
    /// What a layer in memory is written to.
    memory: Option<OwnedFd>,
    cupboard: Option<Cupboard>,
    observed: Observed,
    furnished: Furnished,
}

/// What observes a sandbox from outside.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Where its calls are seen.
    pub(crate) calls: Option<OwnedFd>,
    /// Where its programs tell of themselves.
    pub(crate) effects: Option<OwnedFd>,
}

/// What is left of the work for whoever runs the sandbox.
pub(crate) struct Made {
    /// The handle to a layer in memory, for whoever reads it when the sandbox is gone.
    pub(crate) memory: Option<OwnedFd>,
    pub(crate) cupboard: Option<Cupboard>,
    pub(crate) way_out: Option<WayOut>,
    pub(crate) observed: Observed,
}

impl<'plan> Workbench<'plan> {
    pub(crate) fn new(plan: &'plan Plan, handed: Vec<OwnedFd>, furnished: Furnished) -> Self {
        Self {
            plan,
            sources: handed.into(),
            root: None,
            memory: None,
            cupboard: None,
            observed: Observed::default(),
            furnished,
        }
    }

    pub(crate) fn finish(self) -> Made {
        Made {
            memory: self.memory,
            cupboard: self.cupboard,
            way_out: self.furnished.way_out,
            observed: self.observed,
        }
    }

    fn has(&self, namespace: Namespace) -> bool {
        self.furnished.named.contains(&namespace)
    }

    pub(crate) fn apply(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::DropGroups => rustix::thread::set_thread_groups(&[]),
            Step::BecomeUser => privileges::become_user(self.plan.ids.inner),
            Step::DieWithKeeper => {
                use rustix::process::{Signal, set_parent_process_death_signal};
                set_parent_process_death_signal(Some(Signal::KILL))
            }
            Step::Hostname if self.has(Namespace::Uts) => Ok(()),
            Step::Hostname => rustix::system::sethostname(HOSTNAME.to_bytes()),
            Step::LoopbackUp if self.has(Namespace::Net) => Ok(()),
            Step::LoopbackUp => sys::loopback_up(),
            Step::WayOut(_) if self.furnished.way_out.is_some() => Ok(()),
            // It would be the host's network.
            Step::WayOut(_) if !self.plan.namespaces.contains(&Namespace::Net) => Err(Errno::PERM),
            Step::WayOut(steering) => {
                self.furnished.way_out = Some(WayOut::open(steering)?);
                Ok(())
            }
            Step::NewRoot {
                bytes,
                files,
                attributes,
            } => {
                if self.plan.opener == Opener::Init {
                    self.open_sources()?;
                }
                self.new_root(*bytes, *files, attributes)
            }
            Step::Directory { path, mode } => self.directory(path, *mode),
            Step::Symlink { path, target } => self.symlink(path, target),
            Step::Mount {
                target, attributes, ..
            } => self.mount(target, attributes),
            Step::Layer {
                over,
                upper,
                target,
                attributes,
                ..
            } => self.layer(over.is_some(), upper, target, attributes),
            Step::Scratch { places } => self.scratch(places),
            Step::Proc {
                hide_others,
                attributes,
            } => self.proc(*hide_others, attributes),
            Step::Terminals { attributes } => self.terminals(attributes),
            Step::Mask(path) => self.mask(path),
            Step::File { path, content } => self.file(path, content),
            Step::Cover { path, with } => self.cover(path, with),
            Step::Cupboard { path, attributes } => self.cupboard(path, attributes),
            Step::EnterRoot => self.enter(),
            Step::DetachHost => mounts::detach_host(),
            Step::Effects(path) => {
                self.observed.effects = Some(effects::listen(path)?);
                Ok(())
            }
            Step::SealRoot { attributes } => mounts::seal_root(attributes),
            Step::Processors(count) => privileges::keep_processors(*count),
            Step::EmptyBoundingSet => privileges::empty_bounding_set(),
            Step::NoNewPrivileges => rustix::thread::set_no_new_privs(true),
            Step::DropCapabilities => privileges::drop_capabilities(),
            Step::FileRules(rules) => rules::restrict(rules),
            Step::Undumpable => {
                use rustix::process::{DumpableBehavior, set_dumpable_behavior};
                set_dumpable_behavior(DumpableBehavior::NotDumpable)
            }
            Step::Observe { watches, seal } => {
                let program = seccomp::notify(watches, *seal, Arch::HOST);
                self.observed.calls = Some(sys::install_listener(&program)?);
                Ok(())
            }
            Step::Filter(filter) => sys::install_filter(&self.furnished.filters.program(filter)),
        }
    }
}
