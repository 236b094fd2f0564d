//! The allocator: mimalloc, with what it gives out noted for whom the thread works (`repr::memory`), and asked to keep nothing that is free when memory is short.

use mimalloc::MiMalloc;
use repr::memory::noted;
use std::alloc::{GlobalAlloc, Layout};

pub struct Noted;

/// Gives back to the system what this thread has freed; otherwise that happens as the thread goes on to allocate, and so not while it is idle.
pub fn collect() {
    // SAFETY: it may be called at any time, by any thread.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

/// Sizes are those of layouts, which Rust keeps within `isize`.
fn size(layout: &Layout) -> isize {
    layout.size() as isize
}

// SAFETY: every call is handed on as it came, and `noted` neither allocates nor unwinds.
unsafe impl GlobalAlloc for Noted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        noted(size(&layout));
        MiMalloc.alloc(layout)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        noted(-size(&layout));
        MiMalloc.dealloc(at, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        noted(size(&layout));
        MiMalloc.alloc_zeroed(layout)
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, to: usize) -> *mut u8 {
        noted(to as isize - size(&layout));
        MiMalloc.realloc(at, layout, to)
    }
}
