#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Send datagrams for a while, or receive them until they cease; print what the socket knows.

l2fwd_udp.py send ADDRESS PORT SECONDS    -> datagrams sent
l2fwd_udp.py receive ADDRESS PORT         -> datagrams received, and dropped by the socket
"""
import socket
import sys
import time

IDLE = 3  # seconds without a datagram that end the stream


def send(address, port, seconds):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((address, port))
    end = time.monotonic() + seconds
    sent = 0
    while time.monotonic() < end:
        try:
            sock.send(b"x" * 100)
            sent += 1
        except OSError:  # an ICMP error, or no room: not sent
            pass
    print(sent)


def drops(port):
    """The last column of the socket's line in /proc/net/udp."""
    with open("/proc/net/udp", encoding="ascii") as lines:
        for line in lines:
            fields = line.split()
            if fields[1].endswith(f":{port:04X}"):
                return int(fields[-1])
    return 0


def receive(address, port):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, port))
    print("ready", flush=True)
    received = 0
    try:
        while True:
            sock.recv(2048)
            received += 1
            sock.settimeout(IDLE)
    except TimeoutError:
        print(received, drops(port))


if sys.argv[1] == "send":
    send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
else:
    receive(sys.argv[2], int(sys.argv[3]))
