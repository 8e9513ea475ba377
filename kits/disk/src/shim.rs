//! The file system as SQLite calls it: functions in the manner of C around [`Handle`]. This is the one file
//! of the workspace with unsafe code; it decides nothing.
//!
//! What all of it relies on is the contract of `sqlite3_vfs` and `sqlite3_io_methods`: SQLite gives a method
//! the file that [`open`] filled, not after [`close`], and calls no two methods of one file at the same time;
//! buffers are as long as it says; and names end with a zero.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr::null_mut,
    slice,
    sync::{
        OnceLock,
        atomic::{Ordering, fence},
    },
    time::Duration,
};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_vfs};

use crate::{fault::Code, handle::Handle, lock::SlotLock};

/// The name by which SQLite knows the file system.
pub const VFS: &str = "steadfast-disk";

/// A file as SQLite holds it: it reads the first field, and the rest is ours.
#[repr(C)]
struct ShimFile {
    base: sqlite3_file,
    handle: *mut Handle,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Makes the file system known to SQLite, once.
pub(crate) fn register() -> Result<(), Code> {
    static REGISTERED: OnceLock<Result<(), Code>> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        let vfs = Box::leak(Box::new(sqlite3_vfs {
            iVersion: 2,
            szOsFile: size_of::<ShimFile>() as c_int,
            mxPathname: LONGEST_PATH,
            pNext: null_mut(),
            zName: c"steadfast-disk".as_ptr(),
            pAppData: null_mut(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            xDlOpen: Some(dl_open),
            xDlError: Some(dl_error),
            xDlSym: Some(dl_sym),
            xDlClose: Some(dl_close),
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(current_time),
            xGetLastError: None,
            xCurrentTimeInt64: Some(current_time_ms),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        }));
        // SAFETY: the structure lives for ever, and its functions keep the contract of SQLite.
        match unsafe { ffi::sqlite3_vfs_register(vfs, 0) } {
            ffi::SQLITE_OK => Ok(()),
            code => Err(Code(code)),
        }
    })
}

const LONGEST_PATH: c_int = 512;

/// The part of a write that the device replaces as a whole, by what the VFS of Linux tells SQLite.
const SECTOR: c_int = 4096;

/// The time that SQLite is told, in milliseconds of the Julian day: no test depends on it.
const JULIAN_MS: sqlite3_int64 = 212_366_707_200_000;

fn code_of(result: Result<(), Code>) -> c_int {
    result.map_or_else(|Code(code)| code, |()| ffi::SQLITE_OK)
}

/// Reads a name that SQLite gives.
fn text_of<'a>(name: *const c_char) -> Option<&'a str> {
    if name.is_null() {
        return None;
    }
    // SAFETY: a name that is not null ends with a zero, and lives for the call.
    unsafe { CStr::from_ptr(name) }.to_str().ok()
}

/// Does something with an open file.
fn with(file: *mut sqlite3_file, act: impl FnOnce(&mut Handle) -> Result<(), Code>) -> c_int {
    // SAFETY: SQLite gives the file that `open` filled, and calls no other method of it meanwhile.
    let handle = unsafe { file.cast::<ShimFile>().as_ref().and_then(|file| file.handle.as_mut()) };
    code_of(handle.ok_or(Code(ffi::SQLITE_MISUSE)).and_then(act))
}

/// Stores an answer where SQLite wants it.
fn answer<T>(to: *mut T, value: T) -> Result<(), Code> {
    if to.is_null() {
        return Err(Code(ffi::SQLITE_MISUSE));
    }
    // SAFETY: SQLite gives the address of a variable of that type.
    unsafe { to.write(value) };
    Ok(())
}

fn unsigned<T: TryInto<usize>>(number: T) -> Result<usize, Code> {
    number.try_into().map_err(|_| Code(ffi::SQLITE_MISUSE))
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let opened = text_of(name).ok_or(Code(ffi::SQLITE_CANTOPEN)).and_then(|path| Handle::open(path, flags));
    let (methods, handle, code) = match opened {
        Ok(handle) => (&raw const METHODS, Box::into_raw(Box::new(handle)), ffi::SQLITE_OK),
        Err(Code(code)) => (std::ptr::null(), null_mut(), code),
    };
    // SAFETY: SQLite gives room for as many bytes as `szOsFile` says, aligned for a structure.
    unsafe { file.cast::<ShimFile>().write(ShimFile { base: sqlite3_file { pMethods: methods }, handle }) };
    if !out_flags.is_null() {
        // SAFETY: SQLite gives the address of a number, or null.
        unsafe { out_flags.write(flags) };
    }
    code
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite gives the file that `open` filled, and closes it once.
    let handle = unsafe {
        let file = &mut *file.cast::<ShimFile>();
        file.base.pMethods = std::ptr::null();
        std::mem::replace(&mut file.handle, null_mut())
    };
    if !handle.is_null() {
        // SAFETY: `open` made the pointer of a box, and it is taken once.
        drop(unsafe { Box::from_raw(handle) });
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    buffer: *mut c_void,
    count: c_int,
    offset: sqlite3_int64,
) -> c_int {
    with(file, |handle| {
        let (count, offset) = (unsigned(count)?, unsigned(offset)?);
        // SAFETY: the buffer is as long as SQLite says, and ours for the call.
        let buffer = unsafe { slice::from_raw_parts_mut(buffer.cast::<u8>(), count) };
        handle.read(buffer, offset)
    })
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    count: c_int,
    offset: sqlite3_int64,
) -> c_int {
    with(file, |handle| {
        let (count, offset) = (unsigned(count)?, unsigned(offset)?);
        // SAFETY: there are as many bytes as SQLite says, and they do not change during the call.
        let bytes = unsafe { slice::from_raw_parts(bytes.cast::<u8>(), count) };
        handle.write(bytes, offset)
    })
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: sqlite3_int64) -> c_int {
    with(file, |handle| handle.truncate(unsigned(length)?))
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _: c_int) -> c_int {
    with(file, Handle::sync)
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, size: *mut sqlite3_int64) -> c_int {
    with(file, |handle| {
        let length = handle.len()?;
        answer(size, sqlite3_int64::try_from(length).unwrap_or(sqlite3_int64::MAX))
    })
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    with(file, |handle| handle.lock(level))
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    with(file, |handle| {
        handle.unlock(level);
        Ok(())
    })
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite3_file, is_reserved: *mut c_int) -> c_int {
    with(file, |handle| {
        let reserved = handle.is_reserved()?;
        answer(is_reserved, c_int::from(reserved))
    })
}

unsafe extern "C" fn file_control(_: *mut sqlite3_file, _: c_int, _: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_: *mut sqlite3_file) -> c_int {
    SECTOR
}

unsafe extern "C" fn device_characteristics(_: *mut sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    number: c_int,
    size: c_int,
    make: c_int,
    address: *mut *mut c_void,
) -> c_int {
    with(file, |handle| {
        let part = handle.map(unsigned(number)?, unsigned(size)?, make != 0)?;
        answer(address, part.cast())
    })
}

unsafe extern "C" fn shm_lock(file: *mut sqlite3_file, first: c_int, count: c_int, flags: c_int) -> c_int {
    with(file, |handle| {
        let first = unsigned(first)?;
        let slots = first..first.saturating_add(unsigned(count)?);
        if flags & ffi::SQLITE_SHM_UNLOCK != 0 {
            handle.unlock_slots(slots);
            return Ok(());
        }
        let is_shared = flags & ffi::SQLITE_SHM_SHARED != 0;
        handle.lock_slots(slots, if is_shared { SlotLock::Shared } else { SlotLock::Exclusive })
    })
}

unsafe extern "C" fn shm_barrier(_: *mut sqlite3_file) {
    fence(Ordering::SeqCst);
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, _: c_int) -> c_int {
    with(file, |handle| {
        handle.unmap();
        Ok(())
    })
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, sync_folder: c_int) -> c_int {
    let path = text_of(name).ok_or(Code(ffi::SQLITE_IOERR_DELETE));
    code_of(path.and_then(|path| Handle::delete(path, sync_folder != 0)))
}

unsafe extern "C" fn access(_: *mut sqlite3_vfs, name: *const c_char, _: c_int, result: *mut c_int) -> c_int {
    let path = text_of(name).ok_or(Code(ffi::SQLITE_IOERR_ACCESS));
    code_of(path.and_then(Handle::exists).and_then(|exists| answer(result, c_int::from(exists))))
}

unsafe extern "C" fn full_pathname(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    let Some(path) = text_of(name) else { return ffi::SQLITE_CANTOPEN };
    match unsigned(room) {
        Ok(room) if path.len() < room => {}
        _ => return ffi::SQLITE_CANTOPEN,
    }
    // SAFETY: SQLite gives room for as many bytes as it says, which is more than the path has.
    let out = unsafe { slice::from_raw_parts_mut(out.cast::<u8>(), path.len() + 1) };
    out[..path.len()].copy_from_slice(path.as_bytes());
    out[path.len()] = 0;
    ffi::SQLITE_OK
}

unsafe extern "C" fn dl_open(_: *mut sqlite3_vfs, _: *const c_char) -> *mut c_void {
    null_mut()
}

unsafe extern "C" fn dl_error(_: *mut sqlite3_vfs, _: c_int, _: *mut c_char) {}

/// A symbol of a library.
type Symbol = unsafe extern "C" fn(*mut sqlite3_vfs, *mut c_void, *const c_char);

unsafe extern "C" fn dl_sym(_: *mut sqlite3_vfs, _: *mut c_void, _: *const c_char) -> Option<Symbol> {
    None
}

unsafe extern "C" fn dl_close(_: *mut sqlite3_vfs, _: *mut c_void) {}

unsafe extern "C" fn randomness(_: *mut sqlite3_vfs, count: c_int, out: *mut c_char) -> c_int {
    let Ok(room) = unsigned(count) else { return 0 };
    // SAFETY: SQLite gives room for as many bytes as it says.
    let out = unsafe { slice::from_raw_parts_mut(out.cast::<u8>(), room) };
    out.iter_mut().zip(0u8..=u8::MAX).for_each(|(byte, number)| *byte = number.wrapping_mul(167));
    count
}

unsafe extern "C" fn sleep(_: *mut sqlite3_vfs, micros: c_int) -> c_int {
    std::thread::park_timeout(Duration::from_micros(u64::try_from(micros).unwrap_or(0)));
    micros
}

unsafe extern "C" fn current_time(_: *mut sqlite3_vfs, days: *mut f64) -> c_int {
    code_of(answer(days, JULIAN_MS as f64 / 86_400_000.0))
}

unsafe extern "C" fn current_time_ms(_: *mut sqlite3_vfs, ms: *mut sqlite3_int64) -> c_int {
    code_of(answer(ms, JULIAN_MS))
}
