"""A program that starts, answers its probe and then ends, in place of a scheduler: only a settling time finds it."""

# However slowly the scheduler starts, its container ends before the 5 s in which one settles: the last question is
# asked after 3.5 s, and takes a second at most. One that has not answered by then ends as well, and is asked anew in
# the next container. The image has no shell, so the one of the machine is mounted.
ANSWERS_AND_ENDS = """#!/bin/sh
end=$(($(/bin/date +%s%3N) + 3500))
/usr/local/bin/kube-scheduler "$@" &
while [ "$(/bin/date +%s%3N)" -lt "$end" ]; do
    /bin/curl -ksf -m 1 https://127.0.0.1:10259/readyz >>/fault/answers && break
    /bin/sleep 0.1
done
kill -9 $!
"""
FOLDER = "/root/fault"  # on the node: the program, and what it was answered
PATH = "/fault:/usr/local/bin:/bin"
# What is mounted where, so that the program is what the name of the scheduler leads to.
MOUNTED = {FOLDER: "/fault", "/bin": "/bin", "/lib": "/lib", "/lib64": "/lib64"}
