# SPDX-License-Identifier: GPL-2.0
"""Virtual machines by QEMU without hardware help, joined by cables nobody else sees, reached by SSH.

    image = machine.image("debian-12-6.1")
    first = Machine("first", image, nics=(Nic("e1000e", "cable1"), Nic("virtio", "cable2")))
    second = Machine("second", image, nics=(Nic("igb", "cable1"), Nic("virtio", "cable2")))
    with running([first, second], folder) as vms:
        vms["first"].put([Path("some.deb")], "/root")
        done = vms["first"].run("dpkg -i /root/some.deb", limit_s=300)
        vms["second"].cable(1, plugged=False)

Inside, `control` is the interface for ssh; data1, data2, ... are the network cards in their order, down and
without addresses; two with the same cable are joined. A machine writes to a qcow2 overlay of its own, deleted
afterwards. `testbed/vm` does the same from the command line.
"""
