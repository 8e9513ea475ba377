//! A store in trouble: away, silent, full, damaged, or with a clock that jumps.

mod bench;
mod clock;
mod damage;
mod full_disk;
mod hanging;
mod outage;
mod outlived;
mod set_aside;
mod unanswered;
mod unnamed;
mod unread;
