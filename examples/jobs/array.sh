#!/bin/sh
# A hundred renderings, ten at a time: berth submit examples/jobs/array.sh FOLDER
#BERTH --name render --array 0-99%10
#BERTH --cpu 100m --memory 64Mi --time 10m

echo "frame $BERTH_ARRAY_INDEX of $BERTH_ARRAY_LAST into ${1:-.}"
