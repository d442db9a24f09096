#!/bin/sh
# Creates or updates a Koyeb service. Usage: IMAGE=registry/rys-edge ./deploy.sh create|update
# Koyeb's CLI takes --docker-args apart at commas: the plan 26,34 is written 26-34.
set -eu
: "${IMAGE:?the image, e.g. docker.io/you/rys-edge}"
koyeb services "${1:-create}" rys-edge --app rys-edge \
  --docker "$IMAGE" \
  --docker-args=--gpu --docker-args=required \
  --docker-args=-np --docker-args=4 \
  --docker-args=--max-queue --docker-args=16 \
  --docker-args=--alias --docker-args=deep=26-34 \
  --instance-type gpu-nvidia-l4 \
  --ports 8080:http \
  --routes /:8080 \
  --checks 8080:http:/health \
  --checks-grace-period 8080=600 \
  --env PORT=8080 \
  --env 'LLAMA_API_KEY={{secret.rys-edge-api-key}}' \
  --min-scale 0 --max-scale 3 \
  --light-sleep-delay 5m \
  --autoscaling-concurrent-requests 4
