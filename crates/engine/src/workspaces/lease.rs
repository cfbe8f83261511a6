//! What an exec takes of its workspace for as long as it runs: its place in it, a layer for what it
//! writes, a snapshot from before, and how much it may still take of the quota.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use glovebox_backend::{self as backend, CacheMount, Layer, MemoryLayer, Tree};
use glovebox_model::{
    Access, BackendName, Call, Code, Error, Exec, Guarantee, LimitsDemand, Mode, Profile, Result,
    SnapshotId, SpaceId, Stage, Status, Verdict, WorkspaceRef, Writes,
};
use glovebox_policy::DeniedPaths;
use glovebox_workspace::change::Held;
use glovebox_workspace::{Cache, Dir, ExecFiles, Occupied, Project, WorkKind};

use super::basis::Basis;
use super::denied::{Search, WORK};
use super::quota::{Layers, QuotaLeft};
use super::waiting::{count, read};
use crate::effects::{Gated, InLayer, Judging, Written};
use crate::engine::Engine;
use crate::path::Plan;
use crate::workspaces::Workspaces;

/// Of none at all a program could make nothing of, not even in its own memory.
const BLOCK: u64 = 4096;
/// How long changes that keep themselves wait for others to leave the workspace.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct WorkspaceLease {
    /// Dropped when the exec is over.
    occupied: Option<Occupied>,
    pub(crate) layer: Option<Layered>,
    pub(crate) basis: Option<Basis>,
    /// What judges it.
    pub(crate) gated: Gated,
    /// What rules deny to it.
    pub(crate) denied: DeniedPaths,
    /// Where a layer in memory lies when the program has ended.
    pub(crate) tray: Option<MemoryLayer>,
    pub(crate) snapshot: Option<SnapshotId>,
    pub(crate) room: Option<QuotaLeft>,
    /// Each with its place inside. Not removed while they are here.
    pub(crate) caches: Vec<(Cache, PathBuf)>,
    /// What is not as the settings have it, for whoever asked.
    pub(crate) notes: Vec<String>,
}

/// Where the writes of an exec go instead.
#[derive(Debug)]
pub(crate) struct Layered {
    held: Held,
    medium: Medium,
    space: SpaceId,
    which: WorkspaceRef,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Medium {
    /// Watched.
    Disk,
    /// The kernel limits it. Carried to disk when the program has ended.
    Memory { bytes: u64, files: u64 },
}

impl Layered {
    /// From here on the workspace counts as moved when it is changed.
    pub(super) fn begin(&self) -> Result<()> {
        self.held.begin().map_err(|error| error.at(Stage::Admit))
    }

    /// As a sandbox is given it.
    pub(crate) fn layer(&self) -> Layer<'_> {
        match self.medium {
            Medium::Disk => Layer::Disk(self.held.layer()),
            Medium::Memory { bytes, files } => Layer::Memory { bytes, files },
        }
    }
}

/// Whether the kernel has to limit what is written.
fn demands_kernel(profile: &Profile) -> bool {
    profile.require.contains(&Guarantee::DiskLimit) || profile.limits_demand == LimitsDemand::Kernel
}

impl Workspaces {
    /// Whether an exec can write beside its workspace at all, before anything is made.
    pub(crate) fn check_writes(&self, plan: &Plan) -> Result<()> {
        let call = plan.assessed().call();
        if plan.chosen().backend == BackendName::Host && plan.assignment().is_some() {
            let message = "there is no sandbox on the host itself that could be kept";
            return Err(
                Error::new(Code::BackendUnavailable, Stage::Admit, message.to_owned())
                    .hint("leave out `--backend host`, or `--sandbox` and `--lifetime`"),
            );
        }
        if !call.mounts.is_empty() && plan.assignment().is_some() {
            let message =
                "a directory of the host is mounted for one exec, not into a sandbox that is kept";
            return Err(Error::new(Code::Conflict, Stage::Admit, message.to_owned())
                .hint("leave out `--mount`, or `--sandbox` and `--lifetime`"));
        }
        if call.writes.is_direct() && !call.mode.is_judged() && call.over.is_none() {
            return Ok(());
        }
        let refuse = |code, message: &str, hint: &str| {
            Err(Error::new(code, Stage::Admit, message.to_owned()).hint(hint.to_owned()))
        };
        if call.over.is_some()
            && (call.mode != Mode::Run || !matches!(call.writes, Writes::Direct | Writes::Dropped))
        {
            let message = "what is tried on changes that wait is thrown away";
            return refuse(
                Code::Conflict,
                message,
                "leave out `mode` and `writes`; to keep the changes there is `glovebox workspace keep`",
            );
        }
        if call.mode == Mode::Simulate && !call.mounts.is_empty() {
            let message = "a directory of the host would really be written";
            return refuse(Code::Conflict, message, "simulate without `--mount`");
        }
        if call.mode == Mode::Simulate && !matches!(call.writes, Writes::Direct | Writes::Held)
            || call.mode == Mode::Transactional
                && !matches!(call.writes, Writes::Direct | Writes::IfOk)
        {
            let message = format!(
                "mode `{}` says itself where writes go, and `writes` says something else",
                call.mode.as_str()
            );
            return refuse(Code::Conflict, &message, "leave out `writes`");
        }
        let scratch_is_fine = call.mode == Mode::Simulate && call.over.is_none();
        if call.workspace == WorkspaceRef::Scratch && !scratch_is_fine {
            let message =
                "a scratch workspace is gone with its exec: there is nothing to hold back";
            return refuse(
                Code::Conflict,
                message,
                "leave out `writes` (`--hold`, `--keep-if-ok`), or name a workspace: `--project NAME`",
            );
        }
        if plan.assignment().is_some() {
            let message = "a kept sandbox writes to its workspace itself";
            return refuse(
                Code::Conflict,
                message,
                "hold back the writes of an exec with a sandbox of its own: leave out `--sandbox` and `--lifetime`",
            );
        }
        if plan.chosen().backend != BackendName::Native {
            let message = "only the native backend can put a layer over a workspace";
            return refuse(
                Code::BackendUnavailable,
                message,
                "add `--backend native`, or take a snapshot before: `glovebox snapshot take`",
            );
        }
        if plan.assessed().profile().workspace != Access::Rw && call.mode != Mode::Simulate {
            let message = "this exec may not write to its workspace: there is nothing to hold back";
            return refuse(
                Code::Conflict,
                message,
                "leave out `writes` (`--hold`, `--keep-if-ok`)",
            );
        }
        Ok(())
    }

    /// Enters the workspace. Whatever is missing for what was promised refuses the exec.
    pub(crate) fn lease(
        &self,
        plan: &Plan,
        project: &Project,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<WorkspaceLease> {
        let denied = self.instance.policy.denied(plan);
        let gated = plan.gated().clone();
        if project.work().is_none() {
            return Ok(WorkspaceLease {
                denied,
                gated,
                ..WorkspaceLease::default()
            });
        }
        let (call, profile) = (plan.assessed().call(), plan.assessed().profile());
        let (space, which) = (&call.ids.space_id, &call.workspace);
        let occupied = Some(self.enter(space, which, project, is_wanted)?);
        let settings = self.instance.policy.workspace_settings();
        let writes = aside(call);
        let stands_apart = self.stands_apart(plan, project, &denied)?;
        let writes_to_it = profile.workspace == Access::Rw && writes.is_direct();
        // A directory of the caller's own may be a whole home: there only the operator's word counts.
        let is_risky = plan.keeps_before() && project.kind() == WorkKind::Managed;
        let is_configured = settings
            .snapshot_before
            .is_some_and(|tier| profile.tier >= tier);
        // A caller that goes away need not wait for it.
        let mut wanted = |_| match is_wanted() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let snapshot = match (is_configured || is_risky) && writes_to_it {
            true => Some(
                self.open(&call.ids.space_id, &call.workspace, None)?
                    .before(
                        &plan.draft().exec_id,
                        call.ids.agent_id.clone(),
                        &mut wanted,
                    )?,
            ),
            false => None,
        };
        let mut room = match profile.workspace {
            Access::Rw => Some(self.room(project, Layers::Counted)?),
            Access::None | Access::Ro => None,
        };
        let medium = match demands_kernel(profile) {
            false => Medium::Disk,
            true => {
                let mut limits = profile.limits;
                room.unwrap_or_default().narrow(&mut limits);
                let (bytes, files) = Layer::memory_of(&limits);
                // Of a size of nothing no file system can be made.
                let bytes = bytes.max(BLOCK);
                Medium::Memory { bytes, files }
            }
        };
        let layer = match writes {
            Writes::Direct if !stands_apart && !gated.holds => None,
            // What may not be written needs no layer.
            _ if profile.workspace != Access::Rw => None,
            Writes::Direct | Writes::Held | Writes::IfOk | Writes::Dropped => {
                project.hold(&plan.draft().exec_id)?.map(|held| Layered {
                    held,
                    medium,
                    space: call.ids.space_id.clone(),
                    which: call.workspace.clone(),
                })
            }
        };
        if let Some(layer) = layer.as_ref().filter(|_| !gated.gates.is_empty()) {
            layer
                .held
                .note_gated()
                .map_err(|error| error.at(Stage::Admit))?;
        }
        let layer = match (layer, &call.over) {
            (Some(mut layer), Some(over)) => {
                let known = self.instance.store()?.get(&call.ids.space_id, over);
                let laid =
                    known.and_then(|it| lay_over(&mut layer, project, &it, plan.is_of_gate()));
                let laid = laid.and_then(|()| refuse_denied(&denied, &layer, project));
                if let Err(error) = laid {
                    let _ = project.let_go(&plan.draft().exec_id);
                    return Err(error);
                }
                Some(layer)
            }
            (layer, _) => layer,
        };
        let basis = match stands_apart {
            true => self.stand(plan, project, layer.as_ref(), &denied).map(Some),
            false => Ok(None),
        };
        let basis = basis.inspect_err(|_| {
            if layer.is_some() {
                let _ = project.let_go(&plan.draft().exec_id);
            }
        })?;
        if let (Some(layer), Some(room)) = (&layer, &mut room)
            && let Medium::Memory { bytes, files } = layer.medium
        {
            // The record says what really held.
            *room = room.at_most(bytes, files);
        }
        let mut workspace_lease = WorkspaceLease {
            occupied,
            layer,
            basis,
            gated,
            denied,
            snapshot,
            room,
            ..WorkspaceLease::default()
        };
        self.open_caches(plan, &mut workspace_lease);
        Ok(workspace_lease)
    }
}

impl WorkspaceLease {
    /// A program that is over before anybody looks is held by this: no file of it gets larger than what
    /// the quota leaves.
    pub(crate) fn largest_file(&self, profile: &Profile) -> Option<u64> {
        if self.is_in_memory() {
            return None;
        }
        let left = self.room.map(|room| room.bytes().max(BLOCK));
        left.filter(|left| *left < profile.limits.disk_bytes.get())
    }

    /// It works on the workspace itself.
    pub(crate) fn is_plain(&self) -> bool {
        self.layer.is_none() && self.basis.is_none()
    }

    /// What stands in the sandbox as the workspace.
    pub(crate) fn shown<'lease>(&'lease self, work: Option<&'lease Dir>) -> Option<&'lease Dir> {
        let copy = self.basis.as_ref().and_then(|it| it.copy.as_ref());
        work.map(|work| copy.unwrap_or(work))
    }

    /// What stands over it. None when it is shown as it is.
    pub(crate) fn layers(&self) -> Option<backend::Layers<'_>> {
        let over = self.basis.as_ref().and_then(|it| it.over.as_ref());
        let writes = self.layer.as_ref().map(Layered::layer);
        (over.is_some() || writes.is_some()).then(|| backend::Layers {
            over,
            writes: writes.unwrap_or(Layer::None),
        })
    }

    pub(crate) fn show_inputs(&mut self, files: &mut ExecFiles) {
        let own = self.basis.as_mut().and_then(|it| it.inputs.take());
        if let Some(own) = own {
            files.show_inputs(own);
        }
    }

    /// What the exec writes lies in memory, its artifacts as well.
    pub(crate) fn is_in_memory(&self) -> bool {
        let memory = |layer: &Layered| layer.medium != Medium::Disk;
        self.layer.as_ref().is_some_and(memory)
    }

    /// The directories on disk that count together against the disk limit.
    pub(crate) fn watched<'lease>(
        &'lease self,
        work: Option<&'lease Dir>,
        files: &'lease ExecFiles,
    ) -> Vec<&'lease Dir> {
        let counted = match &self.layer {
            _ if self.is_in_memory() => None,
            Some(layer) => Some(layer.held.upper()),
            None => work,
        };
        let artifacts = (!self.is_in_memory()).then(|| files.artifacts());
        let caches = self.caches.iter().map(|(cache, _)| cache);
        let written = caches.filter(|cache| cache.access() == Access::Rw);
        let own = counted.into_iter().chain(artifacts);
        own.chain(written.map(Cache::dir)).collect()
    }

    /// Artifacts that have to be carried to disk.
    pub(crate) fn artifacts_in_memory(&self) -> Option<Dir> {
        self.tray.as_ref().and_then(MemoryLayer::artifacts)
    }

    /// As a sandbox is given them.
    pub(crate) fn cache_mounts(&self) -> Vec<CacheMount<'_>> {
        let mounts = self.caches.iter().map(|(cache, guest)| CacheMount {
            tree: Tree {
                directory: cache.dir(),
                access: cache.access(),
            },
            guest: guest.clone(),
        });
        mounts.collect()
    }

    /// The sandbox is being built and the program not started: from here on the workspace counts as
    /// moved when somebody changes it.
    pub(crate) fn begin(&self) -> Result<()> {
        match &self.layer {
            // It began with the copy.
            Some(_) if self.basis.as_ref().is_some_and(|it| it.copy.is_some()) => Ok(()),
            Some(layer) => layer.begin(),
            None => Ok(()),
        }
    }

    /// It never started.
    pub(crate) fn forget(self, exec: &glovebox_model::ExecId, project: &Project) {
        if self.layer.is_some() {
            let _ = project.let_go(exec);
        }
    }

    /// Decides what becomes of what the exec wrote, and leaves the workspace.
    pub(crate) fn settle(
        self,
        engine: &Engine,
        record: &mut Exec,
        judging: Option<&mut Judging<'_, '_>>,
    ) -> Verdict {
        let Some(mut layer) = self.layer else {
            let Some(judging) = judging else {
                return Verdict::Keep;
            };
            judging.judge(engine, record, Written::Nothing);
            return match (record.mode, record.status) {
                (Mode::Simulate, _) | (_, Status::Held) => Verdict::Discard,
                (Mode::Run | Mode::Transactional | Mode::Mock, _) => Verdict::Keep,
            };
        };
        if let Some(tray) = self.tray
            && let Err(error) = carry(&tray, &mut layer.held, record)
        {
            if let Some(judging) = judging {
                judging.judge(engine, record, Written::Unread(&error));
            }
            let exec = record.exec_id.clone();
            record
                .notes
                .push(format!("what it wrote is lost: {}", error.message));
            record.error.get_or_insert(error.of_exec(exec.clone()));
            if let Ok(workspace) = engine.workspaces.open(&layer.space, &layer.which, None) {
                let _ = workspace.project().let_go(&exec);
            }
            return Verdict::Discard;
        }
        match decide(
            engine,
            &layer,
            (self.basis.as_ref(), &self.denied),
            record,
            judging,
            self.occupied,
        ) {
            Ok(verdict) => verdict,
            Err(error) => {
                record
                    .notes
                    .push(format!("its changes wait: {}", error.message));
                record.notes.extend(error.causes.iter().cloned());
                if record.writes.is_direct() {
                    // A plain run is expected to keep its changes.
                    let exec = record.exec_id.clone();
                    record.error.get_or_insert(error.of_exec(exec));
                }
                Verdict::Hold
            }
        }
    }
}

/// Where the writes of a call go: some modes say it themselves.
pub(crate) const fn aside(call: &Call) -> Writes {
    match call.mode {
        Mode::Simulate => Writes::Held,
        Mode::Transactional => Writes::IfOk,
        Mode::Run | Mode::Mock => match call.over {
            Some(_) => Writes::Dropped,
            None => call.writes,
        },
    }
}

/// The changes of another exec that wait, as if they had been kept. One that is being judged has ended,
/// though its record does not say so yet.
fn lay_over(layer: &mut Layered, project: &Project, record: &Exec, is_judged: bool) -> Result<()> {
    let over = &record.exec_id;
    if !record.status.is_final() && !is_judged {
        let message = format!("`{over}` still runs");
        return Err(Error::new(Code::Conflict, Stage::Admit, message).hint("wait for its end"));
    }
    if layer.medium != Medium::Disk {
        let message = "changes that wait cannot be laid into memory of a fixed size";
        return Err(Error::new(Code::Conflict, Stage::Admit, message)
            .hint("leave out `--require disk_limit` or `--over`"));
    }
    let Some(other) = project.held(over)? else {
        let message = format!("no changes of `{over}` wait in this workspace");
        return Err(Error::new(Code::NotFound, Stage::Admit, message)
            .hint("`glovebox workspace info` lists those that do"));
    };
    let filled = layer.held.fill(other.layer());
    filled.map_err(|error| error.at(Stage::Admit))
}

/// What waits stands above every cover.
fn refuse_denied(denied: &DeniedPaths, layer: &Layered, project: &Project) -> Result<()> {
    match project.work() {
        Some(work) if !denied.is_empty() => {
            Search::new(denied, WORK).refuse(work, &read(&layer.held, work)?)
        }
        Some(_) | None => Ok(()),
    }
}

/// From memory to where changes wait. The memory is free when this returns.
fn carry(tray: &MemoryLayer, held: &mut Held, record: &Exec) -> Result<()> {
    match tray.take() {
        Some(memory) => held.fill(&memory).map_err(|error| error.at(Stage::Judge)),
        // It never ran, so it wrote nothing.
        None if record.duration_ms.is_none() => Ok(()),
        None => {
            let message = "the memory that it wrote to is gone";
            Err(Error::new(Code::Internal, Stage::Judge, message))
        }
    }
}

fn decide(
    engine: &Engine,
    layer: &Layered,
    (basis, denied): (Option<&Basis>, &DeniedPaths),
    record: &mut Exec,
    judging: Option<&mut Judging<'_, '_>>,
    occupied: Option<Occupied>,
) -> Result<Verdict> {
    let exec = record.exec_id.clone();
    let workspace = engine.workspaces.open(&layer.space, &layer.which, None)?;
    let unlocked = layer.held.unlock().map_err(|error| error.at(Stage::Judge));
    let changes = match unlocked.and_then(|()| read(&layer.held, workspace.work()?)) {
        Ok(changes) => changes,
        Err(error) => {
            if let Some(judging) = judging {
                judging.judge(engine, record, Written::Unread(&error));
            }
            return Err(error);
        }
    };
    record.changes = Some(count(&changes));
    let rewritten = basis.and_then(|basis| basis.rewritten(&changes));
    record.notes.extend(rewritten);
    if let Some(judging) = judging {
        let found = InLayer {
            changes: &changes,
            work: workspace.work()?,
            upper: layer.held.upper(),
        };
        judging.judge(engine, record, Written::Layer(found));
    }
    let is_blocked = record.gates.iter().any(|it| it.blocked);
    // Who carries changes over has the workspace alone; until then nobody exchanges it.
    drop(occupied);
    let verdict = match (record.writes, record.status) {
        (Writes::Dropped, _) => Verdict::Discard,
        // Held by a gate: they wait, and are not kept.
        _ if is_blocked && !changes.is_empty() => return Ok(Verdict::Hold),
        _ if is_blocked => Verdict::Discard,
        _ if changes.is_empty() => Verdict::Keep,
        (Writes::Held, _) => return Ok(Verdict::Hold),
        (Writes::Direct, _) | (Writes::IfOk, Status::Succeeded) => {
            let _alone = workspace.occupy_within(PATIENCE)?;
            Search::new(denied, WORK).refuse(workspace.work()?, &changes)?;
            engine.instance.ensure_leased()?;
            let begun = workspace.carry_over(&exec, &layer.held, &changes)?;
            if let Some(preview) = &record.preview {
                // What it showed has been done: nothing of it waits any more.
                workspace.project().forget_sealed(&preview.exec_id)?;
                workspace.project().let_go(&preview.exec_id)?;
            }
            workspace.project().let_go(&exec)?;
            begun.done()?;
            return Ok(Verdict::Keep);
        }
        (Writes::IfOk, _) => Verdict::Discard,
    };
    workspace.project().let_go(&exec)?;
    Ok(verdict)
}
