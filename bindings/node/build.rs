//! Sets the linker options of a Node module.

fn main() {
    napi_build::setup();
}
