//! The commands around a run, as somebody types them.

mod audit;
mod doctor;
mod logs;
mod policy;
mod ps;
mod surface;
mod trial;
