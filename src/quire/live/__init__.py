"""Live groups: the protocols on real sockets.

`join` is the way in. Below it, one idea a module: frames (bytes), handshake (who is there), links (nothing lost or
repeated across reconnects), mesh (connections), driver (inputs and effects), group (what an application holds).
"""
