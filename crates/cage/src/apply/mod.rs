//! One step of the plan, done. Every function here runs in pid 1 before the payload exists.

mod mounts;
mod privileges;
mod rules;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use crate::sys::Result;

use crate::init::Furnished;
use crate::plan::{HOSTNAME, Namespace, Opener, Plan, Step};
use crate::sys;

pub(crate) use mounts::{copy_of, open_source};

/// What the steps share: the root under construction and the trees that go into it.
pub(crate) struct Workbench<'plan> {
    plan: &'plan Plan,
    /// One per mount of the plan, in its order, opened before anything is covered.
    sources: VecDeque<OwnedFd>,
    root: Option<OwnedFd>,
    furnished: Furnished,
}

impl<'plan> Workbench<'plan> {
    pub(crate) fn new(plan: &'plan Plan, handed: Vec<OwnedFd>, furnished: Furnished) -> Self {
        Self {
            plan,
            sources: handed.into(),
            root: None,
            furnished,
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
            Step::Scratch { places } => self.scratch(places),
            Step::Proc {
                hide_others,
                attributes,
            } => self.proc(*hide_others, attributes),
            Step::Terminals { attributes } => self.terminals(attributes),
            Step::Mask(path) => self.mask(path),
            Step::EnterRoot => self.enter(),
            Step::DetachHost => mounts::detach_host(),
            Step::SealRoot { attributes } => mounts::seal_root(attributes),
            Step::Processors(count) => sys::keep_processors(*count),
            Step::EmptyBoundingSet => privileges::empty_bounding_set(),
            Step::NoNewPrivileges => rustix::thread::set_no_new_privs(true),
            Step::DropCapabilities => privileges::drop_capabilities(),
            Step::FileRules(rules) => rules::restrict(rules),
            Step::Undumpable => {
                use rustix::process::{DumpableBehavior, set_dumpable_behavior};
                set_dumpable_behavior(DumpableBehavior::NotDumpable)
            }
            Step::Filter(filter) => sys::install_filter(&self.furnished.filters.program(filter)),
        }
    }
}
